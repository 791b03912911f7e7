"""`treefold doctor`; servers that are there are asked in the integration tests."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from treefold_cli._checks import diagnosis

Project = Callable[..., Path]
Executable = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def root(project: Project) -> Path:
    return project("v1/Health/Get.py")


def findings(forked: Executable, root: Path, **variables: str) -> list[dict[str, Any]]:
    done = forked("doctor", "--json", cwd=root, **variables)
    report = json.loads(done.stdout)
    failed = any(each["status"] == "fail" for each in report["findings"])
    assert (done.returncode, report["ok"], done.stderr) == (int(failed), not failed, "")
    return report["findings"]


def about(found: list[dict[str, Any]], topic: str) -> list[tuple[str, str, str]]:
    return [(f["status"], f["text"], f["advice"]) for f in found if f["topic"] == topic]


def test_a_sound_project_is_all_ok(forked: Executable, root: Path):
    done = forked("doctor", cwd=root)
    assert (done.returncode, done.stderr) == (0, "")
    *lines, summary = done.stdout.splitlines()
    assert {line.split()[0] for line in lines} == {"ok"}
    assert {line.split()[1] for line in lines} == {
        *("python", "packages", "extras", "layout", "settings")
    }
    assert summary == f"{len(lines)} ok, 0 warn, 0 fail"
    assert "ok   layout    1 route in v1" in lines


def test_a_missing_extra_for_tests_is_no_finding(monkeypatch: pytest.MonkeyPatch):
    def none_installed(name: str) -> None: ...

    monkeypatch.setattr(diagnosis, "_installed_version", none_installed)
    missing = {found.text.partition(":")[0] for found in diagnosis.check_extras({})}
    assert "watch" in missing
    assert "test" not in missing


def test_handlers_that_fail_to_load_fail_with_file_and_reason(forked: Executable, root: Path):
    for name, text in {"A": "1 / 0\n", "B": "raise SystemExit(9)\n", "C": "x = 1\n"}.items():
        (root / f"Api/v1/{name}").mkdir()
        (root / f"Api/v1/{name}/Get.py").write_text(text)
    assert [
        (status, text.partition(";")[0])
        for status, text, _ in about(findings(forked, root), "boot")
    ] == [
        ("fail", "Api/v1/A/Get.py: ZeroDivisionError: division by zero"),
        ("fail", "Api/v1/B/Get.py: SystemExit: 9"),
        ("fail", "Api/v1/C/Get.py: HandlerError: v1/C/Get.py has no `handler`"),
    ]


def test_a_default_version_that_no_folder_has_fails(forked: Executable, root: Path):
    found = about(findings(forked, root, TREEFOLD_DEFAULT_VERSION="v9"), "settings")
    text = "Setting default_version must name a folder of Api/, got 'v9'; use 'latest', v1"
    assert ("fail", text, "") in found


def test_a_layout_that_is_off_is_told(forked: Executable, root: Path):
    (root / "services").mkdir()
    (root / "Hooks.py").touch()
    (root / "Api/V2/X").mkdir(parents=True)
    (root / "Api/V2/X/Get.py").touch()
    assert about(findings(forked, root), "layout") == [
        ("warn", "'services' is not read", "rename it to 'Services'"),
        ("warn", "'Hooks.py' is not read", "rename it to 'hooks.py'"),
        ("ok", "1 route in v1", ""),
        ("warn", "1 file skipped, 0 routes defined twice", "see 'treefold check'"),
    ]


def test_no_project_fails(forked: Executable, tmp_path: Path):
    (status, text, advice), *_ = about(findings(forked, tmp_path), "layout")
    assert (status, text) == ("fail", "there is no folder 'Api' in '.'")
    assert advice == "name the project with --app-dir, or 'treefold new'"


def test_settings_are_read_as_the_application_does(forked: Executable, root: Path):
    (root / "treefold.toml").write_text("grace = 5\n")
    found = about(findings(forked, root, TREEFOLD_GRCE="3", TREEFOLD_DEV="1"), "settings")
    assert found == [
        ("ok", "read from treefold.toml", ""),
        ("warn", "variable TREEFOLD_GRCE means nothing", "did you mean TREEFOLD_GRACE?"),
    ]
    (root / "treefold.toml").write_text("grce = 5\n")
    status, text, _ = about(findings(forked, root), "settings")[0]
    assert status == "fail"
    assert text.startswith("Unknown setting 'grce' in treefold.toml; did you mean 'grace'")


def test_dotenv_and_own_settings_are_read_as_the_application_does(forked: Executable, root: Path):
    (root / ".env").write_text("TREEFOLD_GRCE=3\nTREEFOLD_APP__SIZE=s3cret\nOTHER\n")
    text = "import dataclasses\n\n@dataclasses.dataclass\nclass Own:\n    size: int\n\n"
    (root / "settings.py").write_text(f"{text}app_settings = Own\n")
    found = findings(forked, root)
    reason = "Setting app.size in TREEFOLD_APP__SIZE must be an integer, got 's3cret'"
    assert about(found, "settings") == [
        ("ok", "read from .env", ""),
        ("warn", "variable TREEFOLD_GRCE means nothing", "did you mean TREEFOLD_GRACE?"),
        ("fail", reason, ""),
    ]
    (root / ".env").write_text("TREEFOLD_GRACE\n")
    status, text, _ = about(findings(forked, root), "settings")[0]
    assert (status, text) == (
        "fail",
        "TREEFOLD_GRACE in line 1 of .env must have a value; write TREEFOLD_GRACE=value",
    )


def test_short_secrets_fail_and_stay_unseen(forked: Executable, root: Path):
    variables = {"SECRET_KEY": "hunter2", "TREEFOLD_SESSION_SECRET": "x" * 32, "MAIL_SECRET": "ab"}
    done = forked("doctor", cwd=root, **variables)
    assert done.returncode == 1
    lines = [line for line in done.stdout.splitlines() if line.split()[1:2] == ["secrets"]]
    advice = "(python -c 'import secrets; print(secrets.token_urlsafe(32))' makes one)"
    assert lines == [
        f"warn secrets   MAIL_SECRET has 2 bytes, fewer than 32  {advice}",
        f"fail secrets   SECRET_KEY has 7 bytes, fewer than 32  {advice}",
        "ok   secrets   TREEFOLD_SESSION_SECRET has 32 bytes",
    ]
    assert "hunter2" not in done.stdout


def test_short_secrets_of_the_settings_fail_and_stay_unseen(forked: Executable, root: Path):
    (root / "treefold.toml").write_text(
        'secret_key = "hunter2"\nsecret_key_fallbacks = ["hunter22", "' + "x" * 32 + '"]\n'
    )
    done = forked("doctor", cwd=root)
    assert done.returncode == 1
    texts = [text for _, text, _ in about(findings(forked, root), "secrets")]
    assert texts == [
        "setting secret_key has 7 bytes, fewer than 32",
        "setting secret_key_fallbacks has 8 bytes, fewer than 32",
    ]
    assert "hunter2" not in done.stdout + done.stderr


QUEUE = """
from types import SimpleNamespace

class Queue:
    def setup(self, app):
        self.root = app.root

    async def ready(self):
        ok = (self.root / "running").exists()
        text = "at example:1 answers" if ok else "at example:1 is away"
        check = {"topic": "queue", "name": "main", "ok": ok, "text": text}
        return [SimpleNamespace(advice="" if ok else "start it", **check)]

class Late(Queue):
    def setup(self, app):
        raise RuntimeError("no licence\\nfound")

    async def ready(self):
        return []
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder for the path with two extensions of another distribution."""
    folder = tmp_path / "site"
    info = folder / "queues-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: queues\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[treefold.extensions]\nqueue = queues:Queue\nlate = queues:Late\n"
    )
    (folder / "queues.py").write_text(QUEUE)
    return folder


def test_extensions_say_whether_they_are_ready(forked: Executable, root: Path, site: Path):
    variables = {"PYTHONPATH": str(site), "TREEFOLD_INSTALLED_EXTENSIONS": "1"}
    assert about(findings(forked, root, **variables), "queue") == [
        ("fail", "main: at example:1 is away", "start it")
    ]
    (root / "running").touch()
    found = findings(forked, root, **variables)
    assert about(found, "queue") == [("ok", "main: at example:1 answers", "")]
    assert about(found, "late") == [("fail", "no licence found", "")]


def test_extensions_are_not_looked_for_without_a_reason(forked: Executable, root: Path, site: Path):
    assert about(findings(forked, root, PYTHONPATH=str(site)), "queue") == []


def test_a_redis_url_that_the_client_refuses_fails_without_its_password(
    forked: Executable, root: Path
):
    done = forked("doctor", cwd=root, REDIS_URL="hunter2@127.0.0.1:6379")
    assert done.returncode == 1
    assert (
        "fail redis     REDIS_URL: the URL is of no kind that Redis has"
        "  (let it begin with redis://, rediss://, unix://)\n"
    ) in done.stdout
    assert "hunter2" not in done.stdout


def test_without_the_driver_a_redis_is_not_asked(monkeypatch: pytest.MonkeyPatch):
    def find_nothing(_: str) -> None:
        return None

    monkeypatch.setattr("treefold_cli._checks.redis_login.find_spec", find_nothing)
    monkeypatch.setenv("REDIS_URL", "redis://:hunter2@127.0.0.1")

    (found,) = diagnosis.check_redis_connections(None)

    assert (found.status, found.advice) == ("warn", "pip install 'treefold[redis]'")
    assert found.text == "REDIS_URL: cannot be asked: the driver redis is not installed"


def test_a_package_that_does_not_fit_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Metadata as pip writes it, in a folder of its own on the path."""
    info = tmp_path / "treefold_extra-9.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: treefold-extra\nVersion: 9.9\n"
        "Requires-Dist: treefold-router>=99\nRequires-Dist: no-such-package\n"
        "Requires-Dist: only-with-extra; extra == 'x'\nRequires-Dist: typer>=0.1\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    wrong = [found for found in diagnosis.check_framework_packages() if found.status == "fail"]
    assert [found.text.partition(", but")[0] for found in wrong] == [
        "treefold-extra 9.9 requires treefold-router>=99",
        "treefold-extra 9.9 requires no-such-package, which is not installed",
    ]
    assert {found.advice for found in wrong} == {"pip install --upgrade treefold"}


def test_an_old_interpreter_fails(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(diagnosis.sys, "version_info", (3, 10, 4))
    (found,) = diagnosis.check_python_version()
    assert (found.status, found.advice) == ("fail", "install Python 3.11 or newer")
