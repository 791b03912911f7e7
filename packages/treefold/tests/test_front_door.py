"""The umbrella: every promised name is there, and nothing is loaded before it is used."""

import importlib
import importlib.util
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import treefold

HEAVY = ("treefold_http", "treefold_cli", "uvicorn", "pydantic", "typer", "asyncio")


def run(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment or None
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


CLIENTS = {"AsyncTestClient", "TestClient"}
"""They need httpx, which comes with the extra `test`."""


@pytest.mark.parametrize("name", sorted(set(treefold.__all__) - CLIENTS))
def test_every_listed_name_can_be_imported(name: str) -> None:
    assert getattr(treefold, name) is not None
    assert name in dir(treefold)


@pytest.mark.parametrize("name", sorted(CLIENTS))
def test_a_test_client_is_there_or_says_what_to_install(name: str) -> None:
    if importlib.util.find_spec("httpx"):
        client = getattr(treefold, name)
        assert client is getattr(importlib.import_module("treefold_http.testing"), name)
    else:
        with pytest.raises(Exception, match=r'pip install "treefold\[test\]"'):
            getattr(treefold, name)


@pytest.mark.parametrize("name", sorted(set(treefold.__all__) - CLIENTS - {"__version__"}))
def test_a_name_is_the_object_of_the_package_that_owns_it(name: str) -> None:
    owner = "treefold_logging" if name in ("get_logger", "mask") else "treefold_http"
    assert getattr(treefold, name) is getattr(importlib.import_module(owner), name)


def test_importing_the_umbrella_alone_loads_nothing_heavy() -> None:
    code = f"import sys, treefold; print([n for n in {HEAVY!r} if n in sys.modules])"
    assert run(code) == "[]"


def test_an_unknown_name_is_an_attribute_error_that_names_it() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Bogus'"):
        treefold.Bogus  # noqa: B018 - the point of the test


def test_the_readme_lists_every_extra() -> None:
    package = Path(__file__).parent.parent
    extras = tomllib.loads((package / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    listed = (package / "README.md").read_text().partition("Extras: ")[2].partition("\n\n")[0]
    assert "test" in extras
    assert [name for name in extras if f"`{name}`" not in listed] == []


def test_the_log_module_gives_the_names_of_the_log_package() -> None:
    from treefold.logging import get_logger, mask

    assert mask({"password": "x"}) == {"password": "***"}
    assert get_logger().name == "treefold"


def test_the_orm_loads_what_is_asked_for() -> None:
    code = (
        "import sys, treefold.orm; from treefold.orm import Model, fields; "
        "print('treefold_orm._functions.windows' in sys.modules, 'Window' in dir(treefold.orm))"
    )
    assert run(code) == "False True"


def test_fields_and_functions_of_the_orm_can_be_imported_from_modules_of_their_own() -> None:
    import treefold.orm
    from treefold.orm.fields import CharField
    from treefold.orm.functions import Lower

    assert (CharField, Lower) == (treefold.orm.fields.CharField, treefold.orm.Lower)


def test_jobs_can_be_imported_without_the_extra() -> None:
    import treefold.jobs
    import treefold_jobs

    assert treefold.jobs.__all__ == ["Schedule", "aenqueue", "alater", "enqueue", "job", "later"]
    for name in treefold.jobs.__all__:
        assert getattr(treefold.jobs, name) is getattr(treefold_jobs, name)


def test_the_asgi_entry_point_serves_the_folder_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "Api").mkdir()
    code = "from treefold.asgi import app, create_app; print(app.root, create_app().root)"
    assert run(code, TREEFOLD_APP_DIR=str(tmp_path)) == f"{tmp_path} {tmp_path}"


def test_the_module_runs_the_command_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "treefold", "--version"], capture_output=True, text=True
    )
    assert (done.returncode, treefold.__version__ in done.stdout) == (0, True)
