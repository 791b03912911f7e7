"""`check --deploy` finds each of the planted mistakes, and nothing in applications without one.

The mistakes are data in `deploy_mistakes/`; they are planted into the base project there, which is
booted in this process, several in one boot where they do not meet.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from treefold import Application
from treefold_http import BootError
from treefold_http._deploy.secrets import EXAMPLES
from treefold_http.deploy import SUBJECTS, Finding, check_deployment
from treefold_http.extensions import release
from treefold_scaffold import create_project

FOLDER = Path(__file__).parent / "deploy_mistakes"
DATA: dict[str, Any] = tomllib.loads((FOLDER / "mistakes.toml").read_text(encoding="utf-8"))
MISTAKES: list[dict[str, Any]] = DATA["mistake"]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sound deployment, whatever the variables of this process."""
    for name in [name for name in os.environ if name.startswith(("TREEFOLD_", "REDIS_"))]:
        monkeypatch.delenv(name)
    for name, value in DATA["environment"].items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TREEFOLD_INSTALLED_EXTENSIONS", "false")  # no database is asked


def findings_of(root: Path) -> list[Finding]:
    """Boot a project, check it as a deployment, and release it."""
    app = Application(root)
    try:
        app.boot()
        assert not app.report.broken
        return check_deployment(app)
    finally:
        asyncio.run(release(app))


def ids_of(root: Path) -> list[str]:
    return sorted({finding.kind.id for finding in findings_of(root)})


def plant(root: Path, mistake: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Change a copy of the base project, and the environment."""
    for name in mistake.get("unset", ()):
        monkeypatch.delenv(name)
    for name, value in mistake.get("environment", {}).items():
        monkeypatch.setenv(name, value)
    for file, old, new in mistake.get("replace", ()):
        text = (root / file).read_text(encoding="utf-8")
        assert old in text, f"{old!r} is not in {file}"
        (root / file).write_text(text.replace(old, new.replace("\\n", "\n"), 1), encoding="utf-8")
    for file, text in mistake.get("files", {}).items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text, encoding="utf-8")
    if "settings" in mistake:
        file = root / "treefold.toml"
        table = merged(tomllib.loads(file.read_text(encoding="utf-8")), mistake["settings"])
        file.write_text("\n".join(toml_lines(table)), encoding="utf-8")
    for file, mode in mistake.get("modes", {}).items():
        (root / file).chmod(int(mode, 8))
    if "tracked" in mistake:
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)
        subprocess.run(["git", "add", "--", *mistake["tracked"]], cwd=root, check=True)


def merged(table: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(table)
    for name, value in more.items():
        known = result.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            value = merged(cast("dict[str, Any]", known), cast("dict[str, Any]", value))
        result[name] = value
    return result


def toml_lines(table: Mapping[str, Any], path: str = "") -> Iterator[str]:
    for name, value in table.items():
        if not isinstance(value, dict):
            yield f"{name} = {toml_value(value)}"
    for name, value in table.items():
        if isinstance(value, dict):
            inner = f"{path}.{name}".lstrip(".")
            yield f"[{inner}]"
            yield from toml_lines(cast("dict[str, Any]", value), inner)


def toml_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    shutil.copytree(FOLDER / "base", root, ignore=shutil.ignore_patterns("__pycache__"))
    return root


def test_there_are_sixty_mistakes_and_twenty_of_them_are_crossings():
    assert len(MISTAKES) == len({mistake["name"] for mistake in MISTAKES}) == 60
    assert sum("crosses" in mistake for mistake in MISTAKES) >= 20


def test_a_sound_deployment_has_no_finding(base: Path):
    assert findings_of(base) == []


def touched(mistake: Mapping[str, Any]) -> set[str]:
    """What a mistake changes, and the ids that are expected of it."""
    files = [edit[0] for edit in mistake.get("replace", ())]
    variables = [*mistake.get("environment", ()), *mistake.get("unset", ())]
    ids = [mistake["finding"], *mistake.get("also", ())]
    variables += [name for name, value in DATA["environment"].items() if value in repr(mistake)]
    return {*files, *variables, *mistake.get("files", ()), *mistake.get("settings", ()), *ids}


def meets_all(mistake: Mapping[str, Any]) -> bool:
    """True if a mistake changes who reaches the application, or what every route runs behind."""
    alone = {"Middleware/__init__.py", "serve", "default_version"}
    return bool({"modes", "tracked", "refused"} & set(mistake) or alone & touched(mistake))


def groups() -> list[list[dict[str, Any]]]:
    """The mistakes by boot: several in one where they do not meet."""
    found: list[list[dict[str, Any]]] = []
    for mistake in MISTAKES:
        for group in [] if meets_all(mistake) else found:
            if not any(meets_all(one) or touched(one) & touched(mistake) for one in group):
                group.append(mistake)
                break
        else:
            found.append([mistake])
    return found


@pytest.mark.parametrize("group", groups(), ids=lambda group: "; ".join(m["name"] for m in group))
def test_planted_mistakes_are_found(
    group: list[dict[str, Any]], base: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(base)
    for mistake in group:
        plant(base, mistake, monkeypatch)
    try:
        found = ids_of(base)
    except BootError as error:
        if group[0].get("refused", "\0") in str(error):
            return  # the boot refuses it, and names the mistake
        raise
    assert found == sorted(name for m in group for name in (m["finding"], *m.get("also", ())))


def test_every_mistake_that_can_be_found_is_planted_or_tested_by_itself():
    planted = {mistake["finding"] for mistake in MISTAKES}
    kinds = {kind.id for kinds in SUBJECTS.values() for kind in kinds}
    assert planted <= kinds
    assert kinds - planted == {
        *("cors-twice", "cors-after-limit", "cors-method", "cors-header", "cors-site", "cors-csrf"),
        *("redis-unreachable", "silenced-nothing", "csrf-same-site"),
    }


SECRET = DATA["environment"]["TREEFOLD_SECRET_KEY"]


@pytest.fixture
def bare_environment(environment: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*DATA["environment"], "TREEFOLD_INSTALLED_EXTENSIONS"):
        monkeypatch.delenv(name)


@pytest.mark.parametrize("application", ["sample", "realworld"])
@pytest.mark.usefixtures("bare_environment")
def test_a_sound_application_has_no_finding(
    application: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
):
    root: Path = request.getfixturevalue(application)
    monkeypatch.chdir(root)
    # The secret of an example is one, and says so itself.
    assert ids_of(root) == ["secret-example"]
    monkeypatch.setenv("TREEFOLD_SECRET_KEY", SECRET)
    assert findings_of(root) == []


@pytest.mark.usefixtures("bare_environment")
def test_the_starter_has_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    create_project("shop", tmp_path, starter=True, models=True)
    monkeypatch.chdir(tmp_path / "shop")
    assert findings_of(tmp_path / "shop") == []


def test_the_secrets_of_all_examples_are_known():
    root = FOLDER.parent.parent
    pages = [*root.glob("docs/**/*.md"), *root.glob("tests-integration/*/treefold.toml")]
    texts = [file.read_text(encoding="utf-8") for file in pages]
    shown = {one for text in texts for one in re.findall(r'^secret_key = "(.{32,})"', text, re.M)}
    assert len(shown) >= 3
    assert shown <= EXAMPLES
