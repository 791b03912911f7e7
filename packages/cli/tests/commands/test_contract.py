"""`treefold contract`: the lock in the folder, in git, and what changed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Treefold = Callable[..., tuple[int, str, str]]
USER = """
from dataclasses import dataclass
from treefold_http import NotFound

@dataclass
class User:
    id: int
    {member}

async def handler(id: int) -> User:
    raise NotFound("no")
"""
PATH = "v1/User/[id]/Get.py"


def git(root: Path, *arguments: str) -> str:
    options = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    command = ["git", "-C", str(root), *options, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def commit(root: Path) -> str:
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", "a change")
    return git(root, "rev-parse", "HEAD").strip()


@pytest.fixture
def shop(project: Callable[..., Path]) -> Callable[..., Path]:
    """A project with one handler, in a repository without commits."""

    def write() -> Path:
        root = project(PATH)
        (root / "Api" / PATH).write_text(USER.format(member="name: str"))
        git(root, "init", "-q", "-b", "main")
        return root

    return write


def test_lock_writes_what_clients_rely_on(shop: Callable[..., Path], treefold: Treefold) -> None:
    root = shop()

    code, out, _ = treefold("contract", "lock")

    assert code == 0
    assert out == (
        "wrote routes.lock: 1 route, 1 type\n"
        "commit it, and let CI run: treefold contract check && treefold contract diff origin/main\n"
    )
    assert (root / "routes.lock").read_text() == (
        "treefold contract 1 rules 1\n"
        "errors problem\n"
        "version v1 stable\n\n"
        "GET /v1/user/{id:int}\n"
        "  200     json User unchecked\n"
        "  404     problem\n\n"
        "type User\n"
        "  id      int\n"
        "  name    str\n"
    )
    assert treefold("contract", "lock")[1] == "routes.lock is up to date: 1 route, 1 type\n"


def test_check_says_what_the_lock_does_not(shop: Callable[..., Path], treefold: Treefold) -> None:
    lock = shop() / "routes.lock"
    treefold("contract", "lock")
    assert treefold("contract", "check")[:2] == (
        0,
        "routes.lock is up to date: 1 route, 1 type; 0 of 1 answers are checked at run time"
        " (0 %)\n",
    )

    text = lock.read_text()
    lock.write_text(text.replace("  name    str\n", "  mail    str\n  name    str\n"))
    code, out, err = treefold("contract", "check")

    assert code == 1
    assert "breaking field-removed: GET /v1/user/{id} 200 json .mail (v1)" in out
    assert "Api/v1/User/[id]/Get.py:10" in out
    assert err.endswith("routes.lock is not what the project does; run 'treefold contract lock'\n")


def test_a_lock_in_another_form_is_refused(shop: Callable[..., Path], treefold: Treefold) -> None:
    lock = shop() / "routes.lock"
    treefold("contract", "lock")
    lines = lock.read_text().count("\n")
    lock.write_text(lock.read_text() + "  mail    str\n")

    code, _, err = treefold("contract", "check")

    assert code == 1
    assert f"Error: routes.lock: Line {lines} of the lock must be '  mail    str', got" in err
    assert err.endswith("run 'treefold contract lock'\n")


def test_check_wants_a_share_of_checked_answers(
    shop: Callable[..., Path], treefold: Treefold
) -> None:
    root = shop()
    treefold("contract", "lock")

    code, _, err = treefold("contract", "check", "--min-held", "90")

    assert code == 1
    assert "At least 90 % of the answers must be checked at run time, got 0 %" in err

    (root / "treefold.toml").write_text("response_model = true\n[contract]\nmin_held = 100\n")
    treefold("contract", "lock")
    assert treefold("contract", "check")[0] == 0
    assert "200     json User\n" in (root / "routes.lock").read_text()


def test_a_broken_file_leaves_the_lock_alone(shop: Callable[..., Path], treefold: Treefold) -> None:
    root = shop()
    treefold("contract", "lock")
    before = (root / "routes.lock").read_bytes()
    (root / "Api/v1/User/Get.py").write_text("import nothing_of_this_name\n")
    (root / "Api/v1/User/Post.py").write_text("async def handler(where: object): ...\n")

    for command in ("lock", "check"):
        code, _, err = treefold("contract", command)

        assert code == 1
        assert "v1/User/Get.py: ModuleNotFoundError" in err
        assert "v1/User/Post.py" in err
    assert (root / "routes.lock").read_bytes() == before


def test_diff_reads_the_lock_of_a_revision(shop: Callable[..., Path], treefold: Treefold) -> None:
    root = shop()
    first = commit(root)
    assert treefold("contract", "lock")[0] == 0
    second = commit(root)
    (root / "Api" / PATH).write_text("this is not Python")  # nothing is imported
    text = (root / "routes.lock").read_text()
    (root / "routes.lock").write_text(text.replace("  name    str\n", ""))

    assert treefold("contract", "diff", first) == (
        0,
        f"{first} has no routes.lock: this is the first\n",
        "",
    )
    code, out, _ = treefold("contract", "diff", second)
    assert code == 1
    assert "breaking field-removed: GET /v1/user/{id} 200 json .name (v1)" in out
    assert treefold("contract", "diff")[:2] == (code, out)


@pytest.mark.parametrize("form", ["json", "github", "markdown"])
def test_diff_has_forms_for_programs_and_reviews(
    shop: Callable[..., Path], treefold: Treefold, form: str
) -> None:
    root = shop()
    treefold("contract", "lock")
    commit(root)
    text = (root / "routes.lock").read_text()
    (root / "routes.lock").write_text(text.replace("  name    str\n", ""))

    code, out, _ = treefold("contract", "diff", "--format", form)

    assert code == 1
    if form == "json":
        (finding,) = json.loads(out)["findings"]
        assert (finding["rule"], finding["file"]) == ("field-removed", f"Api/{PATH}:10")
    elif form == "github":
        assert out.startswith("::error file=Api/v1/User/[id]/Get.py,line=10,title=field-removed::")
    else:
        assert "| breaking `field-removed` | `GET /v1/user/{id} 200 json .name`<br>" in out


def test_a_finding_is_accepted_with_a_reason(shop: Callable[..., Path], treefold: Treefold) -> None:
    root = shop()
    treefold("contract", "lock")
    commit(root)
    text = (root / "routes.lock").read_text()
    (root / "routes.lock").write_text(text.replace("  name    str\n", ""))
    (finding,) = json.loads(treefold("contract", "diff", "--format", "json")[1])["findings"]
    fingerprint = finding["fingerprint"]

    assert treefold("contract", "accept", fingerprint)[0] == 2
    assert treefold("contract", "accept", "0" * 12, "--reason", "x")[0] == 1
    code, out, _ = treefold("contract", "accept", fingerprint, "--reason", "no client reads it")

    assert (code, out.startswith(f"accepted: {fingerprint} field-removed")) == (0, True)
    assert (root / "contract-accepted.txt").read_text().endswith("# no client reads it\n")
    assert treefold("contract", "diff")[0] == 0
    assert "field-removed" in treefold("contract", "show", fingerprint)[1]


def test_two_versions_are_compared(shop: Callable[..., Path], treefold: Treefold) -> None:
    root = shop()
    (root / "Api/v2/User/[id]").mkdir(parents=True)
    (root / "Api/v2/User/[id]/Get.py").write_text(USER.format(member="mail: str"))
    treefold("contract", "lock")

    code, out, _ = treefold("contract", "diff", "v1", "v2")

    assert code == 1
    assert "breaking field-renamed: GET /v2/user/{id} 200 json .mail" in out
    assert treefold("contract", "diff", "v1", "v9")[0] == 2
    assert treefold("contract", "diff", "v1")[0] == 2


@pytest.mark.parametrize(
    ("revision", "words"),
    [
        ("origin/main", "Revision 'origin/main' is not in this clone"),
        ("HEAD:routes.lock", "Revision 'HEAD:routes.lock' is not in this clone"),
        ("", "Revision '' is not in this clone"),
    ],
)
def test_an_unknown_revision_is_named(
    shop: Callable[..., Path], treefold: Treefold, revision: str, words: str
) -> None:
    root = shop()
    treefold("contract", "lock")
    commit(root)

    code, _, err = treefold("contract", "diff", revision)

    assert (code, words in err) == (1, True)


def test_a_shallow_clone_is_told_what_to_fetch(
    shop: Callable[..., Path],
    treefold: Treefold,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = shop()
    treefold("contract", "lock")
    commit(root)
    git(root, "branch", "next")
    commit(root)
    clone = tmp_path / "clone"
    git(root, "clone", "-q", "--depth=1", f"file://{root}", str(clone))
    monkeypatch.chdir(clone)

    _, _, err = treefold("contract", "diff", "origin/next")

    fetch = "git fetch --depth=1 origin next:refs/remotes/origin/next"
    assert fetch in err
    git(clone, *fetch.split()[1:])
    assert treefold("contract", "diff", "origin/next") == (0, "The contract did not change\n", "")


def test_severities_are_those_of_the_project(shop: Callable[..., Path], treefold: Treefold) -> None:
    root = shop()
    treefold("contract", "lock")
    commit(root)
    text = (root / "routes.lock").read_text()
    (root / "routes.lock").write_text(text.replace("  name    str\n", ""))
    settings = root / "treefold.toml"

    settings.write_text('[contract.severity]\nfield-removed = "warning"\n')
    code, out, _ = treefold("contract", "diff")
    assert (code, out.splitlines()[0]) == (0, "1 warning")
    assert treefold("contract", "diff", "--fail-on", "warning")[0] == 1

    settings.write_text('[contract.severity]\nfield-remove = "warning"\n')
    assert "did you mean 'field-removed'?" in treefold("contract", "diff")[2]

    settings.write_text('[contract.severity]\nfield-removed = "ignore"\n')
    assert "must be one of breaking, weaker, warning" in treefold("contract", "diff")[2]


def test_show_prints_a_route_with_its_types(shop: Callable[..., Path], treefold: Treefold) -> None:
    root = shop()

    code, out, _ = treefold("contract", "show", "GET /v1/user/{id}")

    assert code == 0
    assert out == (
        "GET /v1/user/{id:int}\n"
        "  200     json User unchecked\n"
        "  404     problem\n\n"
        "type User\n"
        "  id      int\n"
        "  name    str\n"
    )
    assert treefold("contract", "show", "/v1/user/{id}")[1] == out
    assert treefold("contract", "show")[1].startswith("treefold contract 1 rules 1\n")
    assert "No route '/v1/users'" in treefold("contract", "show", "/v1/users")[2]
    assert not (root / "routes.lock").exists()


def test_without_a_lock_the_command_that_writes_it_is_named(
    shop: Callable[..., Path], treefold: Treefold
) -> None:
    root = shop()
    commit(root)

    for arguments in (("check",), ("diff",), ("accept", "0" * 12, "--reason", "x")):
        code, _, err = treefold("contract", *arguments)
        assert (code, "write it with 'treefold contract lock'" in err) == (1, True)

    (root / "routes.lock").write_text("<<<<<<< ours\n")
    code, _, err = treefold("contract", "diff")
    assert (code, err.startswith("Error: routes.lock: ")) == (1, True)


def test_check_strict_reports_a_stale_lock(shop: Callable[..., Path], treefold: Treefold) -> None:
    lock = shop() / "routes.lock"
    assert "stale-lock" not in treefold("check", "--strict", "--json")[1]
    treefold("contract", "lock")
    assert "stale-lock" not in treefold("check", "--strict", "--json")[1]

    lock.write_text(lock.read_text() + "  mail    str\n")
    code, out, _ = treefold("check", "--strict")

    assert (code, "run 'treefold contract lock'" in out) == (1, True)
    assert treefold("check")[0] == 0


def test_what_no_caller_sent_is_a_note(shop: Callable[..., Path], treefold: Treefold) -> None:
    root = shop()
    treefold("contract", "lock")
    revision = commit(root)
    text = (root / "routes.lock").read_text()
    (root / "routes.lock").write_text(text.replace("GET /v1/user/{", "GET /v1/person/{"))
    log = root / "service.log"
    start = '[INFO] usage {"from":"2026-11-01T08","to":"2026-11-01T09","routes":[["GET '
    log.write_text(f'{start}/v1/other",1,[["a",1]],[]]]}}\n')

    code, out, _ = treefold("contract", "diff", revision, "--used", str(log))
    assert (code, out.split("\n")[0]) == (0, "1 note")
    log.write_text(f'{start}/v1/user/{{id}}",1,[["a",1]],[]]]}}\n')
    code, out, _ = treefold("contract", "diff", revision, "--used", str(log))
    assert (code, out.split("\n")[0]) == (1, "1 breaking change")
    log.write_text("nothing\n")
    code, _, errors = treefold("contract", "diff", revision, "--used", str(log))
    assert code == 1
    assert errors.startswith("Error: No line of the log is one of usage")
