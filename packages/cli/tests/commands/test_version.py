"""`treefold version create|list|diff`, through the installed script."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

Treefold = Callable[..., tuple[int, str, str]]
Project = Callable[..., Path]
Executable = Callable[..., "subprocess.CompletedProcess[str]"]

HANDLER = "from Api.v1.User.Services.names import name  # Api.v1\n\n\ndef handler(request): ...\n"


@pytest.fixture
def root(project: Project) -> Path:
    root = project("v1/User/[id]/Get.py", "v1/Health/Get.py", "v1/Chat/Ws.py")
    (root / "Api/v1/User/[id]/Get.py").write_text(HANDLER)
    (root / "Api/v1/User/Services").mkdir()
    (root / "Api/v1/User/Services/names.py").write_text("name = 'Api.v1'\n")
    return root


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.py"))


def test_a_version_is_created_from_the_latest(forked: Executable, root: Path):
    done = forked("version", "create", "2", cwd=root)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "created: Api/v2 from Api/v1, 4 files, imports rewritten in 1\n"
    assert files(root / "Api/v2") == files(root / "Api/v1")
    changed = (root / "Api/v2/User/[id]/Get.py").read_text()
    assert changed == HANDLER.replace("from Api.v1", "from Api.v2")
    assert sorted(os.listdir(root)) == ["Api"]


def test_the_source_can_be_named_and_left_empty(forked: Executable, root: Path):
    forked("version", "create", "v5", cwd=root)
    (root / "Api/v5/Health/Get.py").unlink()
    done = forked("version", "create", "6", "--from", "1", "--empty", cwd=root)
    assert done.stdout == "created: Api/v6 from Api/v1, 3 files, 3 empty\n"
    assert files(root / "Api/v6") == ["Chat/Ws.py", "Health/Get.py", "User/[id]/Get.py"]
    checked = forked("check", "--strict", cwd=root)
    assert "v6" not in checked.stdout


def test_a_plan_is_printed_and_nothing_written(forked: Executable, root: Path):
    done = forked("version", "create", "2", "--plan", cwd=root)
    assert done.stdout.splitlines() == [
        "would create Api/v2 from Api/v1:",
        "  copy     Chat/Ws.py",
        "  copy     Health/Get.py",
        "  copy     User/Services/names.py",
        "  rewrite  User/[id]/Get.py",
    ]
    assert os.listdir(root / "Api") == ["v1"]


def test_a_plan_is_data_too(forked: Executable, root: Path):
    done = forked("version", "create", "2", "--plan", "--json", cwd=root)
    plan = json.loads(done.stdout)
    assert (plan["version"], plan["from"], plan["written"]) == ("v2", "v1", False)
    entry = {"path": "User/[id]/Get.py", "action": "rewrite", "places": 1}
    assert plan["files"][-1] == {**entry, "computed": []}


COMPUTED = """\
from importlib import import_module

VERSION = "v1"
mail = import_module(f"Api.{VERSION}.User.Services.names")


def handler(request): ...
"""


@pytest.mark.parametrize("plan", [[], ["--plan"]])
def test_imports_of_computed_names_are_listed(forked: Executable, root: Path, plan: list[str]):
    (root / "Api/v1/Health/Get.py").write_text(COMPUTED)
    done = forked("version", "create", "2", *plan, cwd=root)
    assert (done.returncode, done.stderr) == (
        0,
        "not rewritten: Api/v2/Health/Get.py:4 imports a computed name; check that it does not lead"
        " to v1\n",
    )
    record = json.loads(forked("version", "create", "3", "--json", cwd=root).stdout)
    assert [one["computed"] for one in record["files"] if "Health" in one["path"]] == [[4]]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["1"], 2, "Error: Target 'Api/v1' exists; choose another number or remove it\n"),
        (["x"], 2, "Error: Version must be a number, got 'x'; write it like '2'\n"),
        (["2", "--from", "9"], 2, "Error: No version 'v9' in 'Api'; 'treefold version list' shows"),
    ],
)
def test_a_wrong_version_is_wrong_use(
    forked: Executable, root: Path, arguments: list[str], code: int, message: str
):
    done = forked("version", "create", *arguments, cwd=root)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1)
    assert done.stderr.startswith(message)


def test_a_syntax_error_names_the_file_and_the_line(forked: Executable, root: Path):
    (root / "Api/v1/Health/Get.py").write_text("x = 1\ny = = 2\n")
    done = forked("version", "create", "2", cwd=root)
    assert (done.returncode, done.stdout) == (1, "")
    expected = "Error: 'Api/v1/Health/Get.py', line 2: invalid syntax; mend it first\n"
    assert done.stderr == expected
    assert os.listdir(root / "Api") == ["v1"]


def test_a_disk_that_is_full_is_one_line_and_leaves_nothing(forked: Executable, root: Path):
    """A limit on the size of files stands for the full disk: also root meets it."""
    (root / "Api/v1/big.bin").write_bytes(bytes(1000))
    full = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))\n"
    program = f"{full}from treefold_cli import main\nmain()\n"
    command = [sys.executable, "-B", "-c", program, "version", "create", "2"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("Error: ")
    assert "File too large" in done.stderr
    assert sorted(os.listdir(root)) == ["Api"]
    assert os.listdir(root / "Api") == ["v1"]


def test_versions_are_listed(forked: Executable, root: Path):
    forked("version", "create", "10", cwd=root)
    forked("version", "create", "9", "--from", "1", "--empty", cwd=root)
    noon = datetime(2024, 2, 29, 12).timestamp()
    for path in root.rglob("*"):
        os.utime(path, (noon, noon))
    done = forked("version", "list", cwd=root)
    lines = [re.sub(" +", " ", line) for line in done.stdout.splitlines()]
    assert lines == [
        "v1 3 routes 1 service file since 2024-02-29",
        "v9 3 routes 0 service files since 2024-02-29",
        "v10 3 routes 1 service file since 2024-02-29 latest",
    ]


def test_files_of_one_service_are_counted_as_files(forked: Executable, root: Path):
    package = root / "Api/v1/User/Services/mail"
    package.mkdir()
    for name in ("__init__.py", "send.py", "layout.html"):
        (package / name).touch()
    done = forked("version", "list", cwd=root)
    assert re.match("v1 +3 routes +4 service files +since ", done.stdout), done.stdout


def test_versions_are_data_too(forked: Executable, root: Path):
    noon = datetime(1971, 1, 1, 12).timestamp()
    os.utime(root / "Api/v1/Chat/Ws.py", (noon, noon))
    (root / "Api/v2").mkdir()
    done = forked("version", "list", "--json", cwd=root)
    assert json.loads(done.stdout) == [
        {
            "version": "v1",
            "latest": True,
            "routes": ["WEBSOCKET /v1/chat", "GET /v1/health", "GET /v1/user/{id}"],
            "services": ["User/Services/names.py"],
            "since": "1971-01-01",
        },
        {"version": "v2", "latest": False, "routes": [], "services": [], "since": None},
    ]


def test_no_versions_say_how_to_make_one(treefold: Treefold, project: Project):
    project()
    message = "No versions; make one with 'treefold create v1/health get'\n"
    assert treefold("version", "list") == (0, "", message)
    assert treefold("version", "list", "--json") == (0, "[]\n", "")


def test_versions_are_compared(forked: Executable, root: Path):
    forked("version", "create", "2", cwd=root)
    assert forked("version", "diff", "1", "2", cwd=root).stdout == (
        "v1 and v2 have the same routes and services\n"
    )
    (root / "Api/v2/Health/Get.py").rename(root / "Api/v2/Health/Post.py")
    (root / "Api/v2/Chat/Ws.py").write_text("x = 1\n")
    done = forked("version", "diff", "v1", "2", cwd=root)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "- GET /v1/health\n+ POST /v2/health\n~ WEBSOCKET /v2/chat\n"
    record = json.loads(forked("version", "diff", "1", "2", "--json", cwd=root).stdout)
    assert record == {
        "from": "v1",
        "to": "v2",
        "added": ["POST /v2/health"],
        "removed": ["GET /v1/health"],
        "changed": ["WEBSOCKET /v2/chat"],
        "services_added": [],
        "services_removed": [],
        "services_changed": [],
    }


def test_a_missing_version_cannot_be_compared(treefold: Treefold, root: Path):
    code, out, err = treefold("version", "diff", "1", "3")
    assert (code, out) == (2, "")
    assert err == "Error: No version 'v3' in 'Api'; 'treefold version list' shows them\n"


def test_listing_imports_no_handler(forked: Executable, root: Path):
    (root / "Api/v1/Health/Get.py").write_text("open('imported', 'w')\nraise SystemExit(9)\n")
    assert forked("version", "list", cwd=root).returncode == 0
    assert forked("version", "create", "2", cwd=root).returncode == 0
    assert forked("version", "diff", "1", "2", cwd=root).returncode == 0
    assert not (root / "imported").exists()


DATES = "deprecated = 2026-11-01\nsunset = 2027-06-30\nsuccessor = 'v2'\n"


def test_stages_are_listed_with_versions_and_routes(forked: Executable, root: Path):
    forked("version", "create", "2", cwd=root)
    (root / "Api/v1/version.toml").write_text(DATES)
    (root / "Api/v2/version.toml").write_text('status = "draft"\n')
    first, second = forked("version", "list", cwd=root).stdout.splitlines()
    assert first.endswith("  deprecated 2026-11-01, sunset 2027-06-30")
    assert second.endswith("  latest  draft")
    one, two = json.loads(forked("version", "list", "--json", cwd=root).stdout)
    assert (one["deprecated"], one["sunset"], one["successor"]) == (
        "2026-11-01",
        "2027-06-30",
        "v2",
    )
    assert two["status"] == "draft"
    routes = forked("routes", cwd=root).stdout.splitlines()
    shown = [line for line in routes if " /v1/health " in line]
    assert shown[0].endswith("Get.py  deprecated 2026-11-01, sunset 2027-06-30")
    records = json.loads(forked("routes", "--json", cwd=root).stdout)
    assert {each.get("sunset") for each in records if each["version"] == "v1"} == {"2027-06-30"}
    assert {each["status"] for each in records if each["version"] == "v2"} == {"draft"}


LOG = """[INFO] GET /v1/health 200 - 1ms id=1
[INFO] usage {"from":"2026-11-01T08:00:00Z","to":"2026-11-01T09:00:00Z","routes":[CALLED]}
"""
CALLED = '["GET /v1/user/{id}",12,[["a",5],["b",3],["c",1],["d",1],["e",1],["f",1]],[["page",2]]]'


def test_usage_lists_every_route_of_a_version(forked: Executable, root: Path):
    (root / "service.log").write_text(LOG.replace("CALLED", CALLED))
    done = forked("version", "usage", "1", "--log", "service.log", cwd=root)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "v1, from 2026-11-01T08:00:00Z to 2026-11-01T09:00:00Z",
        "WEBSOCKET /v1/chat  not called",
        "GET /v1/health      not called",
        "GET /v1/user/{id}   12 requests, last until 2026-11-01T09:00:00Z",
        "         5  a",
        "         3  b",
        "         1  c",
        "         1  d",
        "         1  e",
        "         1  other",
    ]
    done = forked("version", "usage", "v1", "--log", "service.log", "--json", cwd=root)
    record = json.loads(done.stdout)
    assert record["version"] == "v1"
    assert [each["count"] for each in record["routes"]] == [0, 0, 12]
    assert record["routes"][2]["query"] == {"page": 2}
    assert record["routes"][0]["last"] is None


def test_usage_without_lines_of_usage_says_what_to_set(forked: Executable, root: Path):
    (root / "service.log").write_text("[INFO] GET /v1/health 200 - 1ms id=1\n")
    done = forked("version", "usage", "1", "--log", "service.log", cwd=root)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: No line of the log is one of usage; set usage = true")
    done = forked("version", "usage", "7", "--log", "service.log", cwd=root)
    assert (done.returncode, done.stderr) == (
        2,
        "Error: No version '7' has routes; there is v1\n",
    )
    done = forked("version", "usage", "1", "--log", "no.log", cwd=root)
    assert done.returncode == 1
    assert "no.log" in done.stderr
