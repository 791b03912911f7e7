"""`treefold doctor`; servers that are there are asked in the integration tests."""

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from treefold_cli import _diagnosis
from treefold_cli._reachable import PATIENCE, Unreachable, check_redis

Project = Callable[..., Path]
Executable = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def root(project: Project) -> Path:
    return project("v1/Health/Get.py")


def findings(executable: Executable, root: Path, **variables: str) -> list[dict[str, Any]]:
    done = executable("doctor", "--json", cwd=root, **variables)
    report = json.loads(done.stdout)
    failed = any(each["status"] == "fail" for each in report["findings"])
    assert (done.returncode, report["ok"], done.stderr) == (int(failed), not failed, "")
    return report["findings"]


def about(found: list[dict[str, Any]], topic: str) -> list[tuple[str, str, str]]:
    return [(f["status"], f["text"], f["advice"]) for f in found if f["topic"] == topic]


def test_a_sound_project_is_all_ok(executable: Executable, root: Path):
    done = executable("doctor", cwd=root)
    assert (done.returncode, done.stderr) == (0, "")
    *lines, summary = done.stdout.splitlines()
    assert {line.split()[0] for line in lines} == {"ok"}
    assert {line.split()[1] for line in lines} == {
        *("python", "packages", "extras", "layout", "settings")
    }
    assert summary == f"{len(lines)} ok, 0 warn, 0 fail"
    assert "ok   layout    1 routes in v1" in lines


def test_no_handler_is_imported(executable: Executable, root: Path):
    (root / "Api/v1/Health/Get.py").write_text("open('imported', 'w')\nraise SystemExit(9)\n")
    assert executable("doctor", cwd=root).returncode == 0
    assert not (root / "imported").exists()


def test_a_layout_that_is_off_is_told(executable: Executable, root: Path):
    (root / "services").mkdir()
    (root / "Hooks.py").touch()
    (root / "Api/V2/X").mkdir(parents=True)
    (root / "Api/V2/X/Get.py").touch()
    assert about(findings(executable, root), "layout") == [
        ("warn", "'services' is not read", "rename it to 'Services'"),
        ("warn", "'Hooks.py' is not read", "rename it to 'hooks.py'"),
        ("ok", "1 routes in v1", ""),
        ("warn", "1 files skipped, 0 routes defined twice", "see 'treefold check'"),
    ]


def test_no_project_fails(executable: Executable, tmp_path: Path):
    (status, text, advice), *_ = about(findings(executable, tmp_path), "layout")
    assert (status, text) == ("fail", "there is no folder 'Api' in '.'")
    assert advice == "name the project with --app-dir, or 'treefold new'"


def test_settings_are_read_as_the_application_does(executable: Executable, root: Path):
    (root / "treefold.toml").write_text("grace = 5\n")
    found = about(findings(executable, root, TREEFOLD_GRCE="3", TREEFOLD_DEV="1"), "settings")
    assert found == [
        ("ok", "read from treefold.toml", ""),
        ("warn", "variable TREEFOLD_GRCE means nothing", "did you mean TREEFOLD_GRACE?"),
    ]
    (root / "treefold.toml").write_text("grce = 5\n")
    status, text, _ = about(findings(executable, root), "settings")[0]
    assert status == "fail"
    assert text.startswith("Unknown setting 'grce' in treefold.toml; did you mean 'grace'")


def test_short_secrets_fail_and_stay_unseen(executable: Executable, root: Path):
    variables = {"SECRET_KEY": "hunter2", "TREEFOLD_SESSION_SECRET": "x" * 32, "MAIL_SECRET": "ab"}
    done = executable("doctor", cwd=root, **variables)
    assert done.returncode == 1
    lines = [line for line in done.stdout.splitlines() if line.split()[1:2] == ["secrets"]]
    advice = "(python -c 'import secrets; print(secrets.token_urlsafe(32))' makes one)"
    assert lines == [
        f"warn secrets   MAIL_SECRET has 2 bytes, fewer than 32  {advice}",
        f"fail secrets   SECRET_KEY has 7 bytes, fewer than 32  {advice}",
        "ok   secrets   TREEFOLD_SESSION_SECRET has 32 bytes",
    ]
    assert "hunter2" not in done.stdout


def test_short_secrets_of_the_settings_fail_and_stay_unseen(executable: Executable, root: Path):
    (root / "treefold.toml").write_text(
        'secret_key = "hunter2"\nsecret_key_fallbacks = ["hunter22", "' + "x" * 32 + '"]\n'
    )
    done = executable("doctor", cwd=root)
    assert done.returncode == 1
    texts = [text for _, text, _ in about(findings(executable, root), "secrets")]
    assert texts == [
        "setting secret_key has 7 bytes, fewer than 32",
        "setting secret_key_fallbacks has 8 bytes, fewer than 32",
    ]
    assert "hunter2" not in done.stdout + done.stderr


def test_a_redis_of_the_settings_that_is_away_fails_once(
    executable: Executable, root: Path, free_port: int
):
    url = f"redis://:hunter2@127.0.0.1:{free_port}"
    (root / "treefold.toml").write_text(
        f'redis_url = "{url}"\n[caches]\ndefault = "{url}/1"\nsame = "{url}"\nmine = "memory://"\n'
    )
    done = executable("doctor", cwd=root)
    assert done.returncode == 1
    told = about(findings(executable, root), "redis")
    assert [(status, text.partition(": ")[0]) for status, text, _ in told] == [
        ("fail", "setting redis_url"),
        ("fail", "cache 'default'"),
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


def test_extensions_say_whether_they_are_ready(executable: Executable, root: Path, site: Path):
    variables = {"PYTHONPATH": str(site), "TREEFOLD_INSTALLED_EXTENSIONS": "1"}
    assert about(findings(executable, root, **variables), "queue") == [
        ("fail", "main: at example:1 is away", "start it")
    ]
    (root / "running").touch()
    found = findings(executable, root, **variables)
    assert about(found, "queue") == [("ok", "main: at example:1 answers", "")]
    assert about(found, "late") == [("fail", "no licence found", "")]


def test_extensions_are_not_looked_for_without_a_reason(
    executable: Executable, root: Path, site: Path
):
    assert about(findings(executable, root, PYTHONPATH=str(site)), "queue") == []


def test_a_redis_that_is_not_there_fails_without_its_password(
    executable: Executable, root: Path, free_port: int
):
    done = executable("doctor", cwd=root, REDIS_URL=f"redis://:hunter2@127.0.0.1:{free_port}")
    assert (done.returncode, "hunter2" in done.stdout) == (1, False)
    where = f"127.0.0.1:{free_port} cannot be reached (Connection refused)"
    line = f"fail redis     REDIS_URL: {where}  (start it, or mend the URL)"
    assert line in done.stdout.splitlines()


def test_a_redis_url_that_the_client_refuses_fails_without_its_password(
    executable: Executable, root: Path
):
    done = executable("doctor", cwd=root, REDIS_URL="hunter2@127.0.0.1:6379")
    assert done.returncode == 1
    assert (
        "fail redis     REDIS_URL: the URL is of no kind that Redis has"
        "  (let it begin with redis://, rediss://, unix://)\n"
    ) in done.stdout
    assert "hunter2" not in done.stdout


@pytest.fixture
def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def stranger() -> Iterator[Callable[[bytes], int]]:
    """A server of another kind: it answers with the same bytes, or never, whatever it is asked."""
    listeners: list[socket.socket] = []

    def start(answer: bytes) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def serve() -> None:
            with closing(listener.accept()[0]) as client:
                if answer:
                    client.sendall(answer)
                client.recv(1000)
                client.recv(1000)  # until the other side has had enough

        threading.Thread(target=serve, daemon=True).start()
        return listener.getsockname()[1]

    yield start
    for listener in listeners:
        listener.close()


def test_another_kind_of_server_is_not_taken_for_it(stranger: Callable[[bytes], int]):
    port = stranger(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with pytest.raises(Unreachable, match=f"127.0.0.1:{port} answers, but not as "):
        check_redis(f"redis://127.0.0.1:{port}")


def test_a_server_that_is_silent_is_given_up(stranger: Callable[[bytes], int]):
    port = stranger(b"")
    with pytest.raises(Unreachable, match=f"does not answer within {PATIENCE:g} s"):
        check_redis(f"redis://127.0.0.1:{port}")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("redis://x:99999999/", "the URL has no valid port"),
        ("redis://[::1/", "the URL cannot be read"),
        ("redis://nowhere.invalid", "nowhere.invalid:6379 cannot be reached"),
        ("unix:///nowhere.sock", "/nowhere.sock cannot be reached"),
        ("127.0.0.1:6379", "the URL is of no kind that Redis has"),
        ("http://127.0.0.1:6379", "the URL is of no kind that Redis has"),
    ],
)
def test_what_cannot_be_reached_is_named(url: str, message: str):
    with pytest.raises(Unreachable) as caught:
        check_redis(url)
    assert str(caught.value).startswith(message)


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
    wrong = [found for found in _diagnosis.packages() if found.status == "fail"]
    assert [found.text.partition(", but")[0] for found in wrong] == [
        "treefold-extra 9.9 requires treefold-router>=99",
        "treefold-extra 9.9 requires no-such-package, which is not installed",
    ]
    assert {found.advice for found in wrong} == {"pip install --upgrade treefold"}


def test_an_old_interpreter_fails(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_diagnosis.sys, "version_info", (3, 10, 4))
    (found,) = _diagnosis.interpreter()
    assert (found.status, found.advice) == ("fail", "install Python 3.11 or newer")
