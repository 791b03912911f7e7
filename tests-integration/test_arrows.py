"""The packages import each other only along the arrows of the architecture, and this is enforced.

A copy of the packages with one planted import must be refused by the same tools and settings that
`tools/arrows.py` runs; without the import it must pass, or the refusal would prove nothing.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAMS = Path(sys.executable).parent


@pytest.fixture
def copy(repository: Path, tmp_path: Path) -> Path:
    """A copy of the packages and of the settings."""
    ignore = shutil.ignore_patterns("tests", "__pycache__", "dist", ".*cache", ".hypothesis")
    shutil.copytree(repository / "packages", tmp_path / "packages", ignore=ignore)
    shutil.copy(repository / ".importlinter", tmp_path)
    return tmp_path


def run(command: list[str], copy: Path) -> subprocess.CompletedProcess[str]:
    sources = os.pathsep.join(str(path) for path in copy.glob("packages/*/src"))
    return subprocess.run(
        [PROGRAMS / command[0], *command[1:]],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": sources},
        capture_output=True,
        text=True,
        check=False,
    )


def lint_imports(copy: Path) -> subprocess.CompletedProcess[str]:
    return run(["lint-imports", "--no-cache"], copy)


def deptry(copy: Path, package: str) -> subprocess.CompletedProcess[str]:
    folder = f"packages/{package}"
    options = ["--no-ansi", "--ignore=DEP002", f"--config={folder}/pyproject.toml"]
    return run(["deptry", *options, f"{folder}/src"], copy)


def plant(copy: Path, module: str, statement: str) -> None:
    package, _, name = module.partition(".")
    folder = package.removeprefix("treefold_").replace("_", "-")
    file = copy / "packages" / folder / "src" / package / f"{name.replace('.', '/')}.py"
    file.write_text(f'"""Planted."""\n\n{statement}\n', encoding="utf-8")


def test_the_arrows_hold_in_the_repository(copy: Path) -> None:
    outcome = lint_imports(copy)
    assert outcome.returncode == 0, outcome.stdout


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("treefold_router._planted", "treefold_http"),
        ("treefold_router._planted", "treefold_logging"),
        ("treefold_logging._planted", "treefold_router"),
        ("treefold_logging._planted", "treefold_http"),
        ("treefold_http._planted", "treefold_scaffold"),
        ("treefold_http._planted", "treefold_cli"),
        ("treefold_scaffold._planted", "treefold_logging"),
        ("treefold_scaffold._planted", "treefold_http"),
        ("treefold_server._planted", "treefold_http"),
        ("treefold_server._planted", "treefold_router"),
        ("treefold_http._planted", "treefold_server"),
        ("treefold_cli._planted", "treefold_server._listener"),
        ("treefold_cli._planted", "treefold"),
        ("treefold_cli._planted", "treefold_migrations"),
        ("treefold_http._planted", "treefold_migrations"),
        ("treefold_orm._planted", "treefold_migrations"),
        ("treefold_orm._planted", "treefold_jobs"),
        ("treefold_migrations._planted", "treefold_jobs"),
        ("treefold_jobs._planted", "treefold_http"),
        ("treefold_jobs._planted", "treefold_orm._runtime.run"),
        ("treefold_migrations._planted", "treefold_http"),
        ("treefold_migrations._planted", "treefold_orm._schema.records"),
        ("treefold_cli._console.planted", "treefold_cli._checks.findings"),
        ("treefold_cli._dev.planted", "treefold_cli._serve.worker"),
        ("treefold_orm._terms._planted", "treefold_orm._fields.base"),
        ("treefold_orm._compile._planted", "treefold_orm._queries.managers"),
    ],
)
def test_an_import_against_the_arrows_is_refused_and_named(
    copy: Path, importer: str, imported: str
) -> None:
    plant(copy, importer, f"import {imported}\n\n__all__ = ['{imported}']")
    outcome = lint_imports(copy)
    assert outcome.returncode != 0
    assert f"{importer} -> {imported}" in outcome.stdout


def test_an_import_inside_a_function_is_refused_too(copy: Path) -> None:
    plant(copy, "treefold_router._planted", "def later():\n    import treefold_http.__about__")
    assert "treefold_router._planted -> treefold_http" in lint_imports(copy).stdout


def test_an_import_for_types_alone_is_refused_too(copy: Path) -> None:
    body = (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import treefold_orm._models.model"
    )
    plant(copy, "treefold_orm._fields._planted", body)
    assert (
        "treefold_orm._fields._planted -> treefold_orm._models.model" in lint_imports(copy).stdout
    )


PACKAGES = [
    "router",
    "logging",
    "orm",
    "migrations",
    "jobs",
    "docs-ui",
    "scaffold",
    "server",
    "http",
    "cli",
    "treefold",
]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_third_party_import_is_declared(copy: Path, package: str) -> None:
    outcome = deptry(copy, package)
    assert outcome.returncode == 0, outcome.stderr


@pytest.mark.parametrize("package", PACKAGES)
def test_an_undeclared_third_party_import_is_refused_and_named(copy: Path, package: str) -> None:
    name = "treefold" if package == "treefold" else f"treefold_{package.replace('-', '_')}"
    folder = copy / "packages" / package / "src" / name
    (folder / "_planted.py").write_text("import hypothesis\n", encoding="utf-8")
    outcome = deptry(copy, package)
    assert outcome.returncode != 0
    assert "_planted.py" in outcome.stderr
    assert "'hypothesis'" in outcome.stderr


@pytest.fixture
def manifest_findings(repository: Path) -> Callable[[Path, str], list[str]]:
    """What `tools/arrows.py` says about the manifest of one package of a copy."""

    def ask(copy: Path, package: str) -> list[str]:
        shutil.copytree(repository / "tools", copy / "tools", dirs_exist_ok=True)
        code = f"import arrows; [print(line) for line in arrows.manifest_findings({package!r})]"
        outcome = subprocess.run(
            [sys.executable, "-c", code],
            cwd=copy / "tools",
            capture_output=True,
            text=True,
            check=True,
        )
        return outcome.stdout.splitlines()

    return ask


@pytest.mark.parametrize(
    ("module", "planted"),
    [
        ("_headers/dates.py", "from treefold_http._requests.request import Request"),
        (
            "_responses/response.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
            "    from treefold_http._application import Application",
        ),
    ],
    ids=["at run time", "for types only"],
)
def test_an_import_against_the_order_of_the_rooms_is_refused(
    copy: Path, module: str, planted: str
) -> None:
    path = copy / "packages" / "http" / "src" / "treefold_http" / module
    source = path.read_text(encoding="utf-8")
    future = "from __future__ import annotations\n"
    assert future in source
    path.write_text(source.replace(future, f"{future}\n{planted}\n", 1), encoding="utf-8")
    done = lint_imports(copy)
    assert done.returncode != 0
    assert "Rooms of http import downwards, types included BROKEN" in done.stdout


@pytest.mark.parametrize(
    ("requirement", "replaced", "finding"),
    [
        ('"treefold-router>=0.1.0,<0.2",', "", "http: does not require router"),
        (
            '"treefold-router>=0.1.0,<0.2"',
            '"treefold-router==0.1.0"',
            "http: requires router==0.1.0",
        ),
        (
            '"treefold-router>=',
            '"treefold-cli>=0.1,<0.2", "treefold-router>=',
            "http: requires cli",
        ),
        (
            'docs = ["treefold-docs-ui>=0.1.0,<0.2"]',
            "docs = []",
            "http: the extra docs does not bring docs-ui alone",
        ),
    ],
)
def test_a_manifest_that_disagrees_with_the_arrows_is_refused(
    copy: Path,
    manifest_findings: Callable[[Path, str], list[str]],
    requirement: str,
    replaced: str,
    finding: str,
) -> None:
    manifest = copy / "packages" / "http" / "pyproject.toml"
    before = manifest.read_text(encoding="utf-8")
    assert requirement in before
    manifest.write_text(before.replace(requirement, replaced), encoding="utf-8")
    assert any(line.startswith(finding) for line in manifest_findings(copy, "http"))


@pytest.mark.parametrize("package", PACKAGES)
def test_a_manifest_agrees_with_the_arrows(
    copy: Path, manifest_findings: Callable[[Path, str], list[str]], package: str
) -> None:
    assert manifest_findings(copy, package) == []
