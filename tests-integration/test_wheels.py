"""What users install: built wheels in clean environments, the router alone and the whole framework.

Building needs no network. Third parties of the umbrella come from the package index.
"""

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

PACKAGES = [
    *("cli", "docs-ui", "http", "logging", "migrations", "orm", "router", "scaffold", "treefold"),
]


def run(*command: str | Path, cwd: Path) -> str:
    """Run a program without what the test run has put into the environment; give its output."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    outcome = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
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
    """All wheels, built from the source tree."""
    folder = tmp_path_factory.mktemp("wheels")
    for package in PACKAGES:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        run(*command, cwd=repository / "packages" / package)
    return folder


@pytest.fixture(scope="module")
def router(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the router's wheel and no index."""
    environment = Environment(tmp_path_factory.mktemp("alone") / "venv")
    (wheel,) = wheels.glob("treefold_router-*.whl")
    environment.install("--no-index", wheel)
    return environment


@pytest.fixture(scope="module")
def umbrella(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the umbrella and what it requires, and nothing else."""
    environment = Environment(tmp_path_factory.mktemp("whole") / "venv")
    members = {wheel.name.partition("-")[0]: wheel for wheel in wheels.glob("*.whl")}
    constraints = wheels / "constraints.txt"  # ours come from here, whatever an index may hold
    constraints.write_text("".join(f"{m} @ {w.as_uri()}\n" for m, w in members.items()))
    environment.install("--constraint", constraints, members["treefold"])
    return environment


def module_of(package: str) -> str:
    return "treefold" if package == "treefold" else f"treefold_{package.replace('-', '_')}"


def names_in(wheels: Path, package: str) -> list[str]:
    distribution = module_of(package)
    (wheel,) = wheels.glob(f"{distribution}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


# A pytest plugin lies beside its package: loading it must not load the package.
PLUGINS = {"http": ["_treefold_pytest.py"], "orm": ["_treefold_orm_pytest.py"]}


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


def test_the_router_alone_brings_no_other_distribution(router: Environment) -> None:
    assert router.distributions() == {"treefold-router"}


@pytest.fixture(scope="module")
def migrations(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the migrations, the ORM and what it requires, and nothing else."""
    environment = Environment(tmp_path_factory.mktemp("migrations") / "venv")
    found = [next(wheels.glob(f"treefold_{name}-*.whl")) for name in ("orm", "migrations")]
    environment.install(*found)
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
    assert ours == {"treefold", *(f"treefold-{name}" for name in PACKAGES if name != "treefold")}
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


def test_the_wheel_of_the_docs_holds_the_page_compressed_and_the_licences(wheels: Path) -> None:
    names = names_in(wheels, "docs-ui")
    folder = "treefold_docs_ui/assets"
    assert f"{folder}/swagger-ui/swagger-ui-bundle.js" in names
    assert [name for name in names if name.startswith(f"{folder}/packed/") and name.endswith(".gz")]
    licences = {name.rpartition("/")[2] for name in names if "/swagger-ui/" in name}
    assert {"LICENSE", "LICENSE.bundle.txt", "NOTICE"} <= licences
    assert [name for name in names if name.endswith((".map", "package.json"))] == []


def test_the_sdist_of_the_docs_makes_the_wheel_without_npm(
    repository: Path, tmp_path: Path
) -> None:
    package = repository / "packages" / "docs-ui"
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path, cwd=package)
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
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
