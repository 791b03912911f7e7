"""What users install: wheels in clean environments, each package alone and the whole framework.

Building needs no network. Third parties come from the package index.
"""

import gzip
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import orm_postgres
import pytest
from packaging.metadata import Metadata
from serving import Lines, migrate

sys.path.append(str(Path(__file__).parent.parent / "tools"))
sys.path.append(str(Path(__file__).parent / "pages"))

from archives import unpack
from page_blocks import read_blocks
from page_session import PageSession
from suites import SUITES, build, distribution_of, module_of

PACKAGES = sorted(SUITES)
URL = "https://github.com/treefold/treefold/"


def attempt(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program without what the test run has put into the environment."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def run(*command: str | Path, cwd: Path) -> str:
    """Run a program, which must succeed; give its output."""
    outcome = attempt(*command, cwd=cwd)
    assert outcome.returncode == 0, f"{command}\n{outcome.stdout}{outcome.stderr}"
    return outcome.stdout


def uv(*arguments: str | Path, cwd: Path) -> str:
    return run(sys.executable, "-m", "uv", *arguments, cwd=cwd)


class Environment:
    """A clean virtual environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        uv("venv", "--quiet", "--python", sys.executable, folder, cwd=folder.parent)
        self.programs = folder / ("Scripts" if os.name == "nt" else "bin")

    def install(self, *arguments: str | Path) -> None:
        python = self.programs / "python"
        uv("pip", "install", "--quiet", "--python", python, *arguments, cwd=self.folder)

    def run(self, program: str, *arguments: str | Path) -> str:
        return run(self.programs / program, *arguments, cwd=self.folder)

    def python(self, code: str) -> str:
        return self.run("python", "-c", code).strip()

    def distributions(self) -> set[str]:
        listed = uv(
            "pip", "list", "--format", "json", "--python", self.programs / "python", cwd=self.folder
        )
        return {entry["name"] for entry in json.loads(listed)}


@pytest.fixture(scope="module")
def wheels(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All sdists, built from the source tree, and all wheels, built from the sdists."""
    folder = tmp_path_factory.mktemp("wheels")
    with ThreadPoolExecutor(2) as threads:
        sources = [repository / "packages" / package for package in PACKAGES]
        built = list(threads.map(build, sources, [folder] * len(sources)))
    pins = zip(PACKAGES, built, strict=True)  # ours come from here, whatever an index may hold
    lines = [f"{distribution_of(package)} @ {wheel.as_uri()}\n" for package, wheel in pins]
    (folder / "constraints.txt").write_text("".join(lines))
    return folder


@pytest.fixture(scope="module")
def router(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the router's wheel and no index."""
    environment = Environment(tmp_path_factory.mktemp("alone") / "venv")
    environment.install("--no-index", wheel_of(wheels, "router"))
    return environment


@pytest.fixture(scope="module")
def umbrella(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the umbrella and what it requires, and nothing else."""
    environment = Environment(tmp_path_factory.mktemp("whole") / "venv")
    environment.install("--constraint", wheels / "constraints.txt", "treefold")
    return environment


def wheel_of(wheels: Path, package: str) -> Path:
    (wheel,) = wheels.glob(f"{module_of(package)}-*.whl")
    return wheel


def names_in(wheels: Path, package: str) -> list[str]:
    with zipfile.ZipFile(wheel_of(wheels, package)) as archive:
        return archive.namelist()


# A pytest plugin lies beside its package: loading it must not load the package.
PLUGINS = {
    "http": ["_treefold_pytest.py"],
    "jobs": ["_treefold_jobs_pytest.py"],
    "orm": ["_treefold_orm_pytest.py"],
}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_wheel_holds_its_licence_its_typing_marker_and_nothing_but_its_package(
    wheels: Path, package: str
) -> None:
    names = names_in(wheels, package)
    module = module_of(package)
    assert [name for name in names if name.endswith(".dist-info/licenses/LICENSE")]
    assert f"{module}/py.typed" in names
    assert f"{module}/__init__.py" in names
    outside = [n for n in names if not n.startswith((f"{module}/", f"{module}-"))]
    assert outside == PLUGINS.get(package, [])
    assert [n for n in names if "/tests/" in n or n.rpartition("/")[2].startswith("test_")] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_an_sdist_holds_what_its_wheel_and_its_tests_need(wheels: Path, package: str) -> None:
    (sdist,) = wheels.glob(f"{module_of(package)}-[0-9]*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "PKG-INFO"} <= names
    assert [name for name in names if name.startswith("tests/test_") or "/test_" in name]
    assert [name for name in names if "__pycache__" in name or name.endswith(".sqlite3")] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_the_metadata_of_a_wheel_tells_a_stranger_what_it_is(wheels: Path, package: str) -> None:
    with zipfile.ZipFile(wheel_of(wheels, package)) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        metadata = Metadata.from_email(archive.read(name))  # refuses fields that are not valid
    assert metadata.name == distribution_of(package)
    assert 30 < len(metadata.summary or "") < 120
    assert metadata.license_expression == ("MIT AND Apache-2.0" if package == "docs-ui" else "MIT")
    assert str(metadata.requires_python) == ">=3.11"
    assert len(metadata.keywords or []) > 2
    assert metadata.description_content_type == "text/markdown"
    assert (metadata.description or "").startswith(f"# {metadata.name}\n")
    classifiers = set(metadata.classifiers or [])
    versions = {name.rpartition(" ")[2] for name in classifiers if ":: 3." in name}
    assert versions == {"3.11", "3.12", "3.13", "3.14", "3.15"}
    assert {"Typing :: Typed", "Intended Audience :: Developers"} <= classifiers
    urls = metadata.project_urls or {}
    assert set(urls) == {"Documentation", "Source", "Changelog", "Issues"}
    assert urls["Changelog"] == f"{URL}blob/main/packages/{package}/CHANGELOG.md"


@pytest.mark.parametrize("package", PACKAGES)
def test_links_of_a_readme_work_outside_of_the_repository(repository: Path, package: str) -> None:
    text = (repository / "packages" / package / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)|^\[[^\]]+\]: (\S+)$", text, re.MULTILINE)
    for link in (first or second for first, second in links):
        assert link.startswith(("https://", "#"))
        if link.startswith(URL):
            path = link.removeprefix(URL).split("/", 2)[2].partition("#")[0]
            assert (repository / path).exists(), link


SMALL = {
    "contract": {"treefold-contract"},
    "docs-ui": {"treefold-docs-ui"},
    "http": {"treefold-http", "treefold-logging", "treefold-router"},
    "jobs": {"aiosqlite", "treefold-jobs", "treefold-orm"},
    "logging": {"treefold-logging"},
    "orm": {"aiosqlite", "treefold-orm"},
}
"""All distributions that a package brings."""
LARGER = {
    "cli": {"cli", "contract", "http", "logging", "router", "scaffold", "server"},
    "scaffold": {"scaffold", "router"},
    "server": {"server", "logging"},
}
"""The packages of treefold that a package brings, besides third parties."""


@pytest.mark.parametrize("package", [*SMALL, *LARGER])
def test_a_package_alone_brings_what_it_declares_and_has_its_names(
    wheels: Path, tmp_path: Path, package: str
) -> None:
    environment = Environment(tmp_path / "venv")
    only = ("--only-binary", ":all:", "--constraint", wheels / "constraints.txt")
    environment.install(*only, distribution_of(package))
    found = environment.distributions()
    if package in SMALL:
        assert found == SMALL[package]
    else:
        ours = {f"treefold-{name}" for name in LARGER[package]}
        assert {name for name in found if name.startswith("treefold")} == ours
    code = (
        f"import {module_of(package)} as package;"
        " print([n for n in package.__all__ if not hasattr(package, n)])"
    )
    assert environment.python(code) == "[]"


def test_the_router_alone_brings_no_other_distribution(router: Environment) -> None:
    assert router.distributions() == {"treefold-router"}


@pytest.fixture(scope="module")
def migrations(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the migrations, the ORM and what it requires, and nothing else."""
    environment = Environment(tmp_path_factory.mktemp("migrations") / "venv")
    environment.install("--constraint", wheels / "constraints.txt", "treefold-migrations")
    return environment


def test_migrations_install_with_the_orm_alone(migrations: Environment) -> None:
    ours = {name for name in migrations.distributions() if name.startswith("treefold")}
    assert ours == {"treefold-orm", "treefold-migrations"}
    assert "typer" not in migrations.distributions()


def test_migrations_work_without_command_line_and_http(migrations: Environment) -> None:
    code = """
from treefold_migrations import list_migrations, makemigrations, migrate, rollback
from treefold_orm import Model, configure, fields

class Book(Model):
    title = fields.CharField(max_length=20)

configure("sqlite", "shop.sqlite3")
made = makemigrations("migrations")
print(made.path.name, [operation.describe() for operation in made.operations])
print([run.name for run in migrate("migrations")], [run.name for run in migrate("migrations")])
Book.objects.create(title="x")
print(Book.objects.count(), makemigrations("migrations", check=True).operations)
print([run.name for run in rollback("migrations", allow_destructive=True)])
print([done for _, done in list_migrations("migrations", [])])
"""
    assert migrations.python(code).splitlines() == [
        "0001_initial.py ['create table book']",
        "['0001_initial'] []",
        "1 []",
        "['0001_initial']",
        "[False]",
    ]


def test_the_router_alone_reads_a_tree(router: Environment) -> None:
    file = router.folder / "Api" / "v1" / "User" / "[id]" / "Get.py"
    file.parent.mkdir(parents=True)
    file.touch()
    code = """
from treefold_router import RouteTable
table = RouteTable.scan("Api")
print(*[(route.method, route.template, route.file) for route in table.routes])
print(table.resolve("GET", b"/v1/user/42").params)
"""
    assert router.python(code).split("\n") == [
        "('GET', '/v1/user/{id}', 'v1/User/[id]/Get.py')",
        "{'id': '42'}",
    ]


def test_the_umbrella_brings_the_framework_and_one_server(umbrella: Environment) -> None:
    ours = {name for name in umbrella.distributions() if name.startswith("treefold")}
    others = set(PACKAGES) - {"treefold"}
    assert ours == {"treefold", *(f"treefold-{name}" for name in others)}
    assert {"uvicorn", "typer"} <= umbrella.distributions()
    extras = {"watchfiles", "python-multipart", "redis", "uvloop", "httptools", "msgspec"}
    assert extras.isdisjoint(umbrella.distributions())


@pytest.mark.parametrize("program", ["treefold", "tfold"])
def test_the_program_says_its_version(umbrella: Environment, program: str) -> None:
    version = umbrella.python("import treefold; print(treefold.__version__)")
    assert version in umbrella.run(program, "--version").split()


def test_the_module_says_the_version_of_the_program(umbrella: Environment) -> None:
    said = umbrella.run("python", "-m", "treefold", "--version")
    assert said == umbrella.run("treefold", "--version")


def test_importing_treefold_loads_nothing_heavy(umbrella: Environment) -> None:
    heavy = ("treefold_http", "treefold_cli", "uvicorn", "typer", "pydantic", "asyncio", "logging")
    code = f"import sys, treefold; print([name for name in {heavy!r} if name in sys.modules])"
    assert umbrella.python(code) == "[]"


def test_every_public_name_of_treefold_can_be_imported(umbrella: Environment) -> None:
    code = (
        "import treefold; names = [n for n in treefold.__all__ if 'TestClient' not in n];"
        " print([n for n in names if not hasattr(treefold, n)])"
    )
    assert umbrella.python(code) == "[]"


def test_the_test_client_says_how_to_install_what_it_needs(umbrella: Environment) -> None:
    code = """
import treefold
try:
    treefold.TestClient
except Exception as error:
    print(error)
"""
    assert 'pip install "treefold[test]"' in umbrella.python(code)


def test_an_unknown_name_is_an_attribute_error(umbrella: Environment) -> None:
    code = "import treefold; print(hasattr(treefold, 'no_such_name'))"
    assert umbrella.python(code) == "False"


def test_a_new_project_answers_out_of_the_box(umbrella: Environment) -> None:
    umbrella.run("treefold", "new", "shop")
    code = """
import asyncio
from treefold import Application

async def main():
    app = Application("shop")
    scope = {
        "type": "http", "method": "GET", "path": "/v1/health", "raw_path": b"/v1/health",
        "query_string": b"", "headers": [(b"host", b"localhost")], "scheme": "http",
    }
    sent = []
    async def receive(): return {"type": "http.request", "body": b"", "more_body": False}
    async def send(message): sent.append(message)
    await app(scope, receive, send)
    print(sent[0]["status"], sent[1]["body"].decode())

asyncio.run(main())
"""
    status, body = umbrella.python(code).split(" ", 1)
    assert status == "200"
    assert "status" in json.loads(body)


def test_the_first_page_works_from_the_wheels_with_the_extras_of_the_tutorial(
    repository: Path, wheels: Path, tmp_path: Path
) -> None:
    start = repository / "docs" / "start"
    tutorial = (start / "01-first-endpoint.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^\$ pip install (.*)$", tutorial, re.MULTILINE)
    environment = Environment(tmp_path / "venv")
    environment.install("--constraint", wheels / "constraints.txt", *shlex.split(line))
    (tmp_path / "work").mkdir()
    session = PageSession(tmp_path / "work", no_server, no_server)
    outside = {"PATH": f"{environment.programs}{os.pathsep}{os.defpath}", "HOME": str(tmp_path)}
    session.terminal.environment = outside | {"TERMINAL_PWD": str(tmp_path / "pwd")}
    try:
        for block in read_blocks((start / "index.md").read_text(encoding="utf-8")):
            session.run("index.md", block)
        assert session.terminal.folder == tmp_path / "work" / "notes"
        assert "1 passed" in session.terminal.run("treefold test -q")
    finally:
        session.close()


def no_server() -> str:
    pytest.fail("The first page needs no server of a database")


def test_the_wheel_of_the_docs_holds_the_page_compressed_and_the_licences(wheels: Path) -> None:
    names = names_in(wheels, "docs-ui")
    folder = "treefold_docs_ui/assets"
    assert f"{folder}/swagger-ui/swagger-ui-bundle.js" in names
    assert [name for name in names if name.startswith(f"{folder}/packed/") and name.endswith(".gz")]
    licences = {name.rpartition("/")[2] for name in names if "/swagger-ui/" in name}
    assert {"LICENSE", "LICENSE.bundle.txt", "NOTICE"} <= licences
    assert [name for name in names if name.endswith((".map", "package.json"))] == []


def test_the_sdist_of_the_docs_makes_the_wheel_without_npm(wheels: Path, tmp_path: Path) -> None:
    (sdist,) = wheels.glob("treefold_docs_ui-*.tar.gz")
    with tarfile.open(sdist) as archive:
        unpack(archive, tmp_path)
    source = tmp_path / sdist.name.removesuffix(".tar.gz")
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path]
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "treefold_docs_ui/assets/swagger-ui/swagger-ui-bundle.js" in names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


LICENCES = {"LICENSE", "LICENSE.bundle.txt", "NOTICE"}
"""Of the parts that the wheel of the docs carries."""


def test_a_wheel_of_the_docs_from_a_fresh_clone_has_the_licences_of_its_parts(
    repository: Path, wheels: Path, tmp_path: Path
) -> None:
    source = tmp_path / "docs-ui"
    made = shutil.ignore_patterns("assets", "__pycache__", ".assets-*")
    shutil.copytree(repository / "packages/docs-ui", source, ignore=made)
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=source)
    (direct,) = tmp_path.glob("*.whl")
    listed: list[set[str]] = []
    for wheel in (direct, wheel_of(wheels, "docs-ui")):
        with zipfile.ZipFile(wheel) as archive:
            listed.append({name for name in archive.namelist() if "/licenses/" in name})
    assert listed[0] == listed[1]
    assert {name.rpartition("/")[2] for name in listed[0] if "swagger-ui" in name} == LICENCES


def test_the_umbrella_carries_the_pages_in_at_most_300_kilobytes(
    repository: Path, wheels: Path, umbrella: Environment
) -> None:
    with zipfile.ZipFile(wheel_of(wheels, "treefold")) as archive:
        pages = archive.getinfo("treefold/pages.json.gz")
        assert 100_000 < pages.compress_size <= 300_000
        packed = archive.read(pages)
    listed = {page["path"]: page["text"] for page in json.loads(gzip.decompress(packed))}
    docs = repository / "docs"
    written = {file.relative_to(docs).as_posix() for file in docs.glob("**/*.md")}
    assert set(listed) == {path for path in written if not path.startswith("reference/")}
    (sdist,) = wheels.glob("treefold-[0-9]*.tar.gz")
    with tarfile.open(sdist) as archive:
        (name,) = [each for each in archive.getnames() if each.endswith("pages.json.gz")]
        content = archive.extractfile(name)
        assert content is not None
        assert content.read() == packed
    printed = umbrella.run("treefold", "docs", "models#choices", "--json")
    assert json.loads(printed)["markdown"] in listed["guides/models.md"]


def test_uvx_runs_the_program_of_the_umbrella_without_a_warning(
    wheels: Path, tmp_path: Path
) -> None:
    done = attempt(
        *(sys.executable, "-m", "uv", "tool", "run"),
        *("--constraints", wheels / "constraints.txt", "--from", wheel_of(wheels, "treefold")),
        *("treefold", "new", "shop"),
        cwd=tmp_path,
    )
    assert (done.returncode, "warning" in done.stderr) == (0, False), done.stderr
    assert done.stdout == "created: shop\nnext: cd shop && treefold dev\n"
    assert (tmp_path / "shop/Api/v1/Health/Get.py").exists()


def test_the_umbrella_shows_the_docs(umbrella: Environment) -> None:
    (umbrella.folder / "Shop" / "Api" / "v1" / "Book").mkdir(parents=True)
    handler = umbrella.folder / "Shop" / "Api" / "v1" / "Book" / "Get.py"
    handler.write_text("async def handler(request): return []\n", encoding="utf-8")
    code = """
import asyncio
from treefold import Application
async def main():
    app, sent = Application("Shop", dev=True), []
    async def receive(): return {"type": "http.request", "body": b""}
    async def send(message): sent.append(message)
    scope = {"type": "http", "method": "GET", "path": "/docs", "raw_path": b"/docs"}
    scope |= {"query_string": b"", "headers": [(b"host", b"localhost")], "root_path": ""}
    await app(scope, receive, send)
    print(sent[0]["status"], b"assets/" in sent[1]["body"])
asyncio.run(main())
"""
    assert umbrella.python(code) == "200 True"


# Production, without the parts of development


class Production(Environment):
    """An environment as the deployment page makes it."""

    def __init__(self, folder: Path, wheels: Path, page: str) -> None:
        super().__init__(folder)
        (line,) = re.findall(r"^\$ (pip install --no-deps .*)$", page, re.MULTILINE)
        for command in line.split(" && "):
            words = [word.strip('"') for word in command.removeprefix("pip install ").split()]
            self.install("--constraint", wheels / "constraints.txt", *words)
        (self.server,) = re.findall(r"^\$ (uvicorn treefold\.asgi:app)$", page, re.MULTILINE)

    @contextmanager
    def serve(self, root: Path, database: str) -> Generator[str]:
        """Serve a project; give the address."""
        program, *words = self.server.split()
        plain = {k: v for k, v in os.environ.items() if not k.startswith(("TREEFOLD", "PYTHON"))}
        with subprocess.Popen(
            [self.programs / program, *words, "--port", "0"],
            cwd=root,
            env=plain | {"TREEFOLD_DATABASE_URL": database},
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stderr is not None
            lines = Lines(process.stderr)
            try:
                yield lines.wait_for(
                    lambda seen: next(iter(re.findall(r"http://[\d.]+:\d+", "".join(seen))), None)
                )
                process.send_signal(signal.SIGTERM)
                process.wait(20)
            finally:
                process.kill()
                lines.close()


@pytest.fixture(scope="module")
def production(
    repository: Path, wheels: Path, tmp_path_factory: pytest.TempPathFactory
) -> Production:
    page = (repository / "docs" / "guides" / "deployment.md").read_text(encoding="utf-8")
    return Production(tmp_path_factory.mktemp("production") / "venv", wheels, page)


def test_production_has_no_part_of_development(production: Production) -> None:
    ours = {name for name in production.distributions() if name.startswith("treefold")}
    assert ours == {
        "treefold",
        *(f"treefold-{name}" for name in ("http", "logging", "orm", "router")),
    }
    development = {"libcst", "typer", "rich", "pygments", "watchfiles", "jinja2"}
    assert development.isdisjoint(production.distributions())
    (packages,) = production.folder.glob("lib/*/site-packages")
    assert list(packages.glob("**/swagger-ui*")) == []


def test_production_serves_the_sample_on_postgresql(
    production: Production, sample: Path, postgres_server: str, tmp_path: Path
) -> None:
    root = tmp_path / "shop"
    shutil.copytree(sample, root)
    with orm_postgres.database(postgres_server) as database:
        migrate(root, database)
        with production.serve(root, database) as address:
            with urllib.request.urlopen(f"{address}/readyz") as answer:
                assert json.load(answer) == {"status": "ready"}
            with urllib.request.urlopen(f"{address}/v1/book") as answer:
                assert answer.status == 200
                assert json.load(answer)


def test_the_names_of_treefold_work_in_production(production: Production) -> None:
    code = """
import importlib, treefold
missing = [n for n in treefold.__all__ if "TestClient" not in n and not hasattr(treefold, n)]
for name in ("asgi", "auth", "cache", "logging", "middleware", "orm"):
    module = importlib.import_module(f"treefold.{name}")
    missing += [f"{name}.{each}" for each in module.__all__ if not hasattr(module, each)]
print(missing)
"""
    assert production.python(code) == "[]"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-m", "treefold", "routes"], "pip install treefold-cli"),
        (["-c", "import treefold.migrations"], "pip install treefold-migrations"),
        (["-c", "import treefold.jobs"], "pip install treefold-jobs"),
    ],
)
def test_what_production_lacks_says_how_to_install_it(
    production: Production, words: list[str], said: str
) -> None:
    done = attempt(production.programs / "python", *words, cwd=production.folder)
    assert done.returncode == 1
    assert said in done.stderr.splitlines()[-1]


def test_the_program_in_production_says_how_to_install_its_commands(
    production: Production,
) -> None:
    done = attempt(production.programs / "treefold", "routes", cwd=production.folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "The commands of treefold need treefold-cli: pip install treefold-cli\n"
