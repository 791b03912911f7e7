"""`treefold check --deploy`: the report, the exit codes, and what a project silences.

Which mistakes it finds is tested with the planted ones, in the integration tests.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Treefold = Callable[..., tuple[int, str, str]]
Project = Callable[..., Path]

OPEN = "[serve]\nhost = '0.0.0.0'\n"
HEADERS = (
    "from treefold_http.middleware import SecurityHeaders\n\nmiddlewares = [SecurityHeaders()]\n"
)


@pytest.fixture
def root(project: Project) -> Path:
    root = project("v1/Health/Get.py")
    (root / "Middleware").mkdir()
    (root / "Middleware/__init__.py").write_text(HEADERS)
    return root


def codes(treefold: Treefold, *arguments: str) -> tuple[int, list[str]]:
    code, out, _ = treefold("check", "--deploy", "--json", *arguments)
    report = json.loads(out)
    assert report["ok"] is (code == 0)
    return code, [each["code"] for each in report["problems"] if each["kind"] == "deploy"]


def test_without_deploy_nothing_of_the_deployment_is_reported(treefold: Treefold, root: Path):
    (root / "treefold.toml").write_text(OPEN)
    code, out, _ = treefold("check", "--strict")
    assert (code, out) == (0, "1 route: 0 duplicate, 0 broken, 0 skipped\n")


def test_json_is_the_format_json(treefold: Treefold, root: Path):
    assert treefold("check", "--json")[:2] == treefold("check", "--format", "json")[:2]


def test_a_severe_finding_fails_with_what_to_write(treefold: Treefold, root: Path):
    (root / "treefold.toml").write_text(OPEN)
    code, out, _ = treefold("check", "--deploy")
    assert code == 1
    assert out.splitlines() == [
        "[deploy] hosts-any (severe): any Host is answered on 0.0.0.0:8000",
        "  an attacker sends a Host of his own: links made of it, such as that of a password"
        " reset, lead to his site",
        "  write in Middleware/__init__.py:",
        "    TrustedHosts(['api.example.com'])  # your names, first",
        "1 route: 0 duplicate, 0 broken, 0 skipped, 1 of the deployment",
    ]


def test_what_the_variables_of_the_server_say_is_checked(
    treefold: Treefold, root: Path, monkeypatch: pytest.MonkeyPatch
):
    assert codes(treefold) == (0, [])
    monkeypatch.setenv("TREEFOLD_SERVE_HOST", "0.0.0.0")
    assert codes(treefold) == (1, ["hosts-any"])


def test_a_mere_warning_fails_only_if_strict(treefold: Treefold, root: Path):
    (root / "treefold.toml").write_text("docs = true\n")
    assert codes(treefold) == (0, ["docs-public"])
    assert codes(treefold, "--strict") == (1, ["docs-public"])


@pytest.mark.parametrize("name", ["docs-public", "docs-public treefold.toml"])
def test_a_finding_is_silenced_with_a_reason(treefold: Treefold, root: Path, name: str):
    said = f'docs = true\n[silenced]\n"{name}" = "The documents are for everybody."\n'
    (root / "treefold.toml").write_text(said)
    assert codes(treefold, "--strict") == (0, [])


def test_a_finding_without_a_reason_is_not_silenced(treefold: Treefold, root: Path):
    (root / "treefold.toml").write_text('docs = true\n[silenced]\ndocs-public = " "\n')
    code, out, _ = treefold("check", "--deploy")
    assert code == 1
    assert "Setting silenced.docs-public must be a reason, got ' '" in out


def test_what_is_silenced_and_not_found_is_reported(treefold: Treefold, root: Path):
    said = '[silenced]\ndocs-public = "They were once."\ndoc-public = "A slip."\n'
    (root / "treefold.toml").write_text(said)
    assert codes(treefold) == (0, ["silenced-nothing", "silenced-nothing"])
    _, out, _ = treefold("check", "--deploy")
    assert "silenced has 'doc-public', which is the id of no finding" in out
    assert "silenced has 'docs-public', which is not found" in out


def test_the_settings_of_a_project_that_does_not_boot_are_checked(treefold: Treefold, root: Path):
    (root / "treefold.toml").write_text('docs = true\nsecret_key = "short"\n')
    (root / "Middleware/__init__.py").write_text(
        "from treefold_http.middleware import Sessions\n\nmiddlewares = [Sessions()]\n"
    )
    code, found = codes(treefold)
    assert (code, sorted(found)) == (1, ["docs-public", "secret-short"])


def test_a_secret_in_a_settings_file_is_moved_to_the_environment(treefold: Treefold, root: Path):
    (root / "treefold.toml").write_text('secret_key = "short"\n')
    _, out, _ = treefold("check", "--deploy")
    assert out.splitlines()[2:5] == [
        "  write in treefold.toml:",
        "    # without secret_key; in the environment:",
        "    TREEFOLD_SECRET_KEY=$(python -c 'import secrets; print(secrets.token_urlsafe(48))')",
    ]


def test_an_annotation_of_the_environment_names_no_file(
    treefold: Treefold, root: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TREEFOLD_DEV", "1")
    _, out, _ = treefold("check", "--deploy", "--format", "github")
    assert out.startswith("::error::[deploy] TREEFOLD_DEV is set")
