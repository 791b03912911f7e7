"""The console script: ten lines for people, JSON for programs, exit codes, accepted findings."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rule_rows import HEAD

from treefold_contract import __version__

OLD = f"""{HEAD}version v1 stable

GET /v1/user
  query   page int >=1 = 1
  200     json [User]

DELETE /v1/user/{{id:int}}
  guard   audit
  204

type User
  id      int
  mail    str email ?
  name    str
"""
NEW = OLD.replace("  name    str\n", "").replace("  guard   audit\n", "").replace("= 1", "= 2")

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Run `python -m treefold_contract` in a folder with the two locks."""
    (tmp_path / "old.lock").write_text(OLD, encoding="utf-8", newline="\n")
    (tmp_path / "new.lock").write_text(NEW, encoding="utf-8", newline="\n")

    def run(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "treefold_contract", *arguments],
            cwd=tmp_path,
            input=text,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )

    return run


def test_a_diff_is_ten_lines_for_people(command: Command) -> None:
    done = command("diff", "old.lock", "new.lock")
    assert done.stdout.splitlines() == [
        "1 breaking change, 1 change that weakens security, 1 warning",
        "breaking field-removed: GET /v1/user 200 json [].name (v1)",
        '  was str; shown by [{"id": 0}]; new.lock:11',
        "  instead: keep the member, or accept 49f9c5cca399",
        "weaker guard-lost: DELETE /v1/user/{id} guard (v1)",
        "  was audit; new.lock:8",
        "  instead: cover the route by the guard again, or accept 209825ed8a5c",
        "warning param-default-changed: GET /v1/user query page (v1)",
        "  = 1 -> = 2; new.lock:4",
        "  instead: tell clients before, or accept 7e2bf1d300ec",
    ]
    assert done.returncode == 1


def test_what_takes_more_than_ten_lines_is_counted(command: Command) -> None:
    many = OLD.replace("  id      int\n", "") + "".join(f"  x{each}      int\n" for each in "abcd")
    lines = command("diff", "old.lock", "-", text=many.replace("  name    str\n", "")).stdout
    assert len(lines.splitlines()) <= 10
    assert lines.splitlines()[-1] == "and 2 more; --all shows them"
    whole = command("diff", "old.lock", "-", "--all", text=many.replace("  name    str\n", ""))
    assert "more; --all" not in whole.stdout


def test_equal_locks_change_nothing(command: Command) -> None:
    done = command("diff", "old.lock", "-", text=OLD)
    assert (done.returncode, done.stdout) == (0, "The contract did not change\n")


def test_json_has_every_finding(command: Command) -> None:
    done = command("diff", "old.lock", "new.lock", "--format", "json")
    report = json.loads(done.stdout)
    assert report["summary"] == {
        "breaking": 1,
        "weaker": 1,
        "warning": 1,
        "source": 0,
        "compatible": 0,
    }
    first = report["findings"][0]
    assert first["rule"] == "field-removed"
    assert first["witness"] == '[{"id": 0}]'
    assert first["fails"] is True
    assert first["line"] == 11
    assert len(first["fingerprint"]) == 12


def test_the_gravity_that_fails_can_be_lowered(command: Command) -> None:
    only_default = OLD.replace("= 1", "= 2")
    assert command("diff", "old.lock", "-", text=only_default).returncode == 0
    done = command("diff", "old.lock", "-", "--fail-on", "warning", text=only_default)
    assert done.returncode == 1


def test_an_accepted_finding_fails_no_more(command: Command, tmp_path: Path) -> None:
    found = json.loads(command("diff", "old.lock", "new.lock", "--format", "json").stdout)
    for each in found["findings"][:2]:
        done = command(
            "accept", "old.lock", "new.lock", each["fingerprint"], "--reason", "nobody calls it"
        )
        assert done.returncode == 0
    lines = (tmp_path / "contract-accepted.txt").read_text(encoding="utf-8").splitlines()
    assert lines[0].endswith(" field-removed GET /v1/user 200 json [].name # nobody calls it")
    done = command("diff", "old.lock", "new.lock")
    assert done.returncode == 0
    assert done.stdout.startswith("1 warning, 2 accepted\n")
    # once the lock before has the change, the lines accept nothing
    done = command("diff", "new.lock", "new.lock")
    assert "2 accepted, of which there is no change here, can be deleted: " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["diff", "old.lock", "no.lock"], "No such file or directory: 'no.lock'"),
        (["diff", "old.lock", "-"], "Lock must begin with 'treefold contract 1 rules N', got 'x'"),
        (["accept", "old.lock", "new.lock", "0" * 12, "--reason", "x"], "No finding has the"),
        (["accept", "old.lock", "new.lock", "49f9c5cca399", "--reason", " "], "Reason must be"),
        (["diff"], "the following arguments are required: old, new"),
        (["diff", "old.lock", "new.lock", "--on", "today"], "invalid fromisoformat value: 'today'"),
    ],
)
def test_what_cannot_be_compared_is_named(
    command: Command, arguments: list[str], message: str
) -> None:
    done = command(*arguments, text="x")
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_line_that_accepts_nothing_known_is_refused(command: Command, tmp_path: Path) -> None:
    (tmp_path / "contract-accepted.txt").write_text("# reviewed\n\nsomething\n", encoding="utf-8")
    done = command("diff", "old.lock", "new.lock")
    assert done.returncode == 2
    assert "Line 3 must be 'FINGERPRINT RULE PLACE # REASON', got 'something'" in done.stderr


@pytest.mark.parametrize(("day", "code"), [("2030-12-31", 1), ("2031-01-01", 0)])
def test_sunsets_are_judged_on_the_day_that_is_given(
    command: Command, tmp_path: Path, day: str, code: int
) -> None:
    (tmp_path / "none.lock").write_text(HEAD, encoding="utf-8")
    old = OLD.replace("v1 stable", "v1 stable deprecated 2030-01-01 sunset 2031-01-01")
    assert command("diff", "-", "none.lock", "--on", day, text=old).returncode == code


def test_the_version_is_that_of_the_package(command: Command) -> None:
    assert command("--version").stdout == f"{__version__}\n"


def test_a_log_of_usage_makes_notes_of_what_no_caller_sent(command: Command) -> None:
    record = '{"from":"2026-11-01T08","to":"2026-11-01T09","routes":[["GET /v1/x",1,[],[]]]}'
    log = f"[INFO] usage {record}\n"
    done = command("diff", "old.lock", "new.lock", "--used", "-", text=log)
    assert done.returncode == 1  # security is weaker
    assert done.stdout.splitlines()[0] == "1 change that weakens security, 2 notes"
    done = command("diff", "old.lock", "new.lock", "--used", "-", text="no usage\n")
    assert done.returncode == 2
    assert done.stderr.startswith("error: No line of the log is one of usage")
