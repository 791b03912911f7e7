"""The packages import each other only along the arrows of the architecture, and this is enforced.

A copy of the packages with planted imports must be refused by the same tools and settings that
`tools/arrows.py` runs, and each import must be named; without them it must pass, or the refusal
would prove nothing.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

PROGRAMS = Path(sys.executable).parent


def copy_packages(repository: Path, folder: Path) -> Path:
    """Copy the packages and the settings to a folder; return it."""
    ignore = shutil.ignore_patterns("tests", "__pycache__", "dist", ".*cache", ".hypothesis")
    shutil.copytree(repository / "packages", folder / "packages", ignore=ignore)
    shutil.copytree(repository / "tools", folder / "tools", ignore=ignore)
    shutil.copy(repository / ".importlinter", folder)
    return folder


@pytest.fixture
def copy(repository: Path, tmp_path: Path) -> Path:
    """A copy of a test's own, which it may change."""
    return copy_packages(repository, tmp_path)


@pytest.fixture(scope="module")
def unchanged(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of all tests, which each leaves as it was."""
    return copy_packages(repository, tmp_path_factory.mktemp("packages"))


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


def test_the_arrows_hold_in_the_repository(unchanged: Path) -> None:
    outcome = lint_imports(unchanged)
    assert outcome.returncode == 0, outcome.stdout


AGAINST_THE_ARROWS = [
    ("treefold_router._planted", "treefold_http"),
    ("treefold_router._planted", "treefold_logging"),
    ("treefold_contract._planted", "treefold_router"),
    ("treefold_contract._types._planted", "treefold_contract._text.lock_reader"),
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
]


def test_every_import_against_the_arrows_is_refused_and_named(copy: Path) -> None:
    named: list[str] = []
    for number, (importer, imported) in enumerate(AGAINST_THE_ARROWS):
        plant(copy, f"{importer}{number}", f"import {imported}\n\n__all__ = ['{imported}']")
        named.append(f"{importer}{number} -> {imported}")
    in_function = "def later():\n    import treefold_http.__about__"
    plant(copy, "treefold_router._in_function", in_function)
    for_types = (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import treefold_orm._models.model"
    )
    plant(copy, "treefold_orm._fields._for_types", for_types)
    named += [
        "treefold_router._in_function -> treefold_http",
        "treefold_orm._fields._for_types -> treefold_orm._models.model",
    ]
    outcome = lint_imports(copy)
    assert outcome.returncode != 0
    assert [line for line in named if line not in outcome.stdout] == []


PACKAGES = [
    "router",
    "contract",
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
def test_of_all_imports_of_a_package_an_undeclared_one_alone_is_refused(
    unchanged: Path, package: str
) -> None:
    name = "treefold" if package == "treefold" else f"treefold_{package.replace('-', '_')}"
    planted = unchanged / "packages" / package / "src" / name / "_planted.py"
    planted.write_text("import hypothesis\n", encoding="utf-8")
    outcome = deptry(unchanged, package)
    planted.unlink()
    assert outcome.returncode != 0
    findings = [line for line in outcome.stderr.splitlines() if ": DEP" in line]
    assert len(findings) == 1
    assert "_planted.py" in findings[0]
    assert "'hypothesis'" in findings[0]


def ask_about_manifests(copy: Path, packages: Sequence[str]) -> list[str]:
    """Return what `tools/arrows.py` says about the manifests of a copy."""
    code = f"import arrows\nfor name in {packages!r}:\n print(*arrows.manifest_findings(name))"
    outcome = subprocess.run(
        [sys.executable, "-c", code],
        cwd=copy / "tools",
        capture_output=True,
        text=True,
        check=True,
    )
    return [line for line in outcome.stdout.splitlines() if line]


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
    unchanged: Path, requirement: str, replaced: str, finding: str
) -> None:
    manifest = unchanged / "packages" / "http" / "pyproject.toml"
    before = manifest.read_text(encoding="utf-8")
    assert requirement in before
    manifest.write_text(before.replace(requirement, replaced), encoding="utf-8")
    try:
        said = ask_about_manifests(unchanged, ["http"])
    finally:
        manifest.write_text(before, encoding="utf-8")
    assert finding in " ".join(said)


def test_the_manifests_agree_with_the_arrows(unchanged: Path) -> None:
    assert ask_about_manifests(unchanged, PACKAGES) == []
