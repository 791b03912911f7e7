"""Versions that inherit, through the installed script: made, listed, checked and flattened."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Project = Callable[..., Path]
Executable = Callable[..., "subprocess.CompletedProcess[str]"]

HANDLER = "from .Services.names import name\n\n\ndef handler(request):\n    return name\n"


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / "Api" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "Api" / name).write_text(text)


@pytest.fixture
def root(project: Project) -> Path:
    root = project("v1/Health/Get.py", "v1/User/[id]/Get.py", "v1/User/[id]/Delete.py")
    write(root, {"v1/User/Get.py": HANDLER, "v1/User/Services/names.py": "name = 'one'\n"})
    return root


@pytest.fixture
def overlay(root: Path) -> Path:
    write(
        root,
        {
            "v2/version.toml": '# the second\ninherits = "v1"\nstatus = "draft"\n',
            "v2/User/[id]/Delete.gone": "",
            "v2/User/[id]/Get.py": "def handler(request): return 2\n",
        },
    )
    return root


def files(folder: Path) -> dict[str, str]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text() for path in found}


def run(forked: Executable, root: Path, *arguments: str, code: int = 0) -> list[str]:
    done = forked(*arguments, cwd=root)
    assert done.returncode == code, done.stderr
    lines = [*done.stdout.splitlines(), *done.stderr.splitlines()]
    return [line for line in lines if not line.startswith("[INFO] booted")]


def test_an_overlay_is_one_file_of_one_line(forked: Executable, root: Path):
    assert run(forked, root, "version", "create", "2", "--overlay", "--plan") == [
        "would create Api/v2 from Api/v1:",
        "  write    version.toml",
    ]
    assert not (root / "Api/v2").exists()
    assert run(forked, root, "version", "create", "2", "--overlay") == [
        "created: Api/v2, which inherits from Api/v1"
    ]
    assert files(root / "Api/v2") == {"version.toml": 'inherits = "v1"\n'}
    assert run(forked, root, "check")[-1] == "8 routes: 0 duplicate, 0 broken, 0 skipped"


def test_an_overlay_of_another_version_is_refused_with_empty(forked: Executable, root: Path):
    run(forked, root, "version", "create", "2", "--overlay", "--empty", code=2)
    run(forked, root, "version", "create", "1", "--overlay", code=2)
    run(forked, root, "version", "create", "2", "--overlay", "--from", "7", code=2)
    assert sorted(path.name for path in (root / "Api").iterdir()) == ["v1"]


def test_a_base_that_names_itself_is_refused_until_it_is_relative(forked: Executable, root: Path):
    named = "import json  # Api.v1\r\nfrom Api.v1.User.Services.names import name\r\n"
    (root / "Api/v1/User/Get.py").write_bytes(f"{named}def handler(): return name\r\n".encode())
    assert run(forked, root, "version", "create", "2", "--overlay", code=2)[-1].endswith(
        "'Api/v1/User/Get.py', line 2 imports from v1 by name, so v2 cannot inherit v1; run"
        " 'treefold version relative 1' first"
    )
    assert not (root / "Api/v2").exists()
    assert run(forked, root, "version", "relative", "1", "--plan") == [
        "would rewrite: Api/v1/User/Get.py, 1 import"
    ]
    assert b"Api.v1.User" in (root / "Api/v1/User/Get.py").read_bytes()
    assert run(forked, root, "version", "relative", "1") == [
        "rewritten: Api/v1/User/Get.py, 1 import"
    ]
    assert (root / "Api/v1/User/Get.py").read_bytes() == (
        b"import json  # Api.v1\r\nfrom .Services.names import name\r\n"
        b"def handler(): return name\r\n"
    )
    run(forked, root, "version", "create", "2", "--overlay")
    assert run(forked, root, "version", "relative", "1") == [
        "No file names its version in an import"
    ]


def test_what_has_no_relative_form_is_named(forked: Executable, root: Path):
    (root / "Api/v1/User/Get.py").write_text(
        "import Api.v1.User.Services.names\ndef handler(): ...\n"
    )
    assert run(forked, root, "version", "relative", "1", code=1) == [
        "not rewritten: Api/v1/User/Get.py:1 has no relative form; change it"
    ]


def test_the_list_counts_routes_by_layer(forked: Executable, overlay: Path):
    write(overlay, {"v3/version.toml": 'inherits = "v2"\nserve = false\n'})
    first, second, third = run(forked, overlay, "version", "list")
    assert first.endswith("4 routes    1 service file   since " + first.split("since ")[1])
    assert "own" not in first
    assert second.startswith("v2       3 routes    1 service file")
    assert second.endswith("  latest  1 own, 2 from v1, 1 gone  draft")
    assert third.endswith("  not served")
    records = json.loads(run(forked, overlay, "version", "list", "--json")[0])
    assert [sorted(record) for record in records[:2]] == [
        ["latest", "routes", "services", "since", "version"],
        [
            *("gone", "inherits", "latest", "layers", "routes", "services", "since", "status"),
            "version",
        ],
    ]
    assert records[1]["layers"] == {"v2": 1, "v1": 2}
    assert records[2]["served"] is False


def test_routes_why_and_diff_know_layers(forked: Executable, overlay: Path):
    assert run(forked, overlay, "routes")[-1].split() == [
        *("GET", "/v2/user/{id}", "Api/v2/User/[id]/Get.py", "draft"),
    ]
    shown = run(forked, overlay, "routes")
    assert "GET     /v2/health     Api/v1/Health/Get.py (inherited by v2)  draft" in shown
    records = json.loads(run(forked, overlay, "routes", "--json")[0])
    assert {record.get("layer") for record in records} == {None, "v1"}
    explained = run(forked, overlay, "why", "delete", "/v2/user/7", code=1)
    assert (
        "  gone           Api/v1/User/[id]/Delete.py is hidden by Api/v2/User/[id]/Delete.gone"
    ) in explained
    assert run(forked, overlay, "version", "diff", "1", "2") == [
        "- DELETE /v1/user/{id}",
        "~ GET /v2/user/{id}",
    ]


def test_create_names_the_inherited_file_and_overrides_it(forked: Executable, overlay: Path):
    before = files(overlay / "Api")
    assert run(forked, overlay, "create", "user", "get") == [
        "exists: Api/v1/User/Get.py (inherited by v2)"
    ]
    assert files(overlay / "Api") == before
    assert run(forked, overlay, "create", "v2/user", "get", "--override") == [
        "created: Api/v2/User/Get.py  GET /v2/user, copied from Api/v1/User/Get.py"
    ]
    assert (overlay / "Api/v2/User/Get.py").read_text() == HANDLER
    assert run(forked, overlay, "create", "v2/user", "get", "--override") == [
        "exists: Api/v2/User/Get.py"
    ]
    assert run(forked, overlay, "create", "v2/user/[id]", "put")[0].startswith(
        "created: Api/v2/User/[id]/Put.py  PUT /v2/user/{id}"
    )
    assert "Parameter '[key]' is called '[id]' here" in "".join(
        run(forked, overlay, "create", "v2/user/[key]", "post", code=2)
    )


def test_create_uses_the_spelling_of_the_base(forked: Executable, root: Path):
    write(root, {"v1/orderLine/[no]/Get.py": HANDLER, "v2/version.toml": 'inherits = "v1"'})
    assert run(forked, root, "create", "OrderLine/[no]", "post")[0].startswith(
        "created: Api/v2/orderLine/[no]/Post.py"
    )


def test_create_refuses_what_a_mark_removes_and_what_nothing_overrides(
    forked: Executable, overlay: Path
):
    (line,) = run(forked, overlay, "create", "v2/user/[id]", "delete", code=2)
    assert line.endswith(
        "'Api/v2/User/[id]/Delete.gone' removes this handler; delete that file first"
    )
    (line,) = run(forked, overlay, "create", "v2/user", "post", "--override", code=2)
    assert line.endswith("Version 'v2' inherits no POST here; leave out --override")
    (line,) = run(forked, overlay, "create", "v1/user", "post", "--override", code=2)
    assert line.endswith("Version 'v1' inherits no POST here; leave out --override")


def test_check_reports_idle_marks_and_lost_guards(forked: Executable, overlay: Path):
    write(overlay, {"v2/Nothing.gone": "", "v2/Health/Get.py": "def handler(request): ...\n"})
    (overlay / "Api/v1/Health/Get.py").write_text("def handler(request): ...\n")
    (overlay / "Middleware").mkdir()
    (overlay / "Middleware/__init__.py").write_text(
        "from treefold_http.middleware import under\n"
        "async def guard(request, call_next): return await call_next(request)\n"
        "middlewares = [under('/v1/user', guard)]\n"
    )
    shown = run(forked, overlay, "check", code=1)
    assert shown == [
        "[layer] Middleware/__init__.py: guard covers /v1/user and not /v2/user, which v2"
        " inherits; write under('/*/user', ...)",
        "[layer] Api/v2/Nothing.gone: Version 'v2' inherits no 'Nothing' here, so this removes"
        " nothing; remove it",
        "7 routes: 0 duplicate, 0 broken, 0 skipped, 2 of layers",
    ]
    assert (
        "[lint] Api/v2/Health/Get.py: File equals Api/v1/Health/Get.py, which v2 would inherit;"
        " remove it"
    ) in run(forked, overlay, "check", "--strict", code=1)


@pytest.mark.parametrize(
    "command", [["routes"], ["check"], ["version", "list"], ["create", "x", "get"]]
)
def test_an_invalid_version_file_ends_a_command_with_its_message(
    forked: Executable, root: Path, command: list[str]
):
    write(root, {"v2/version.toml": 'inherit = "v1"'})
    (line,) = run(forked, root, *command, code=1)
    assert line.endswith("Unknown key 'inherit' in Api/v2/version.toml; write 'inherits'")


def test_a_flattened_version_is_the_copy(forked: Executable, overlay: Path):
    (overlay / "Api/v1/User/data.json").write_text("{}")
    assert run(forked, overlay, "version", "flatten", "2", "--plan") == [
        "would flatten Api/v2:",
        "  copy     Health/Get.py  from Api/v1",
        "  copy     User/Get.py  from Api/v1",
        "  copy     User/Services/names.py  from Api/v1",
        "  copy     User/data.json  from Api/v1",
        "  remove   User/[id]/Delete.gone",
    ]
    base = files(overlay / "Api/v1")
    assert run(forked, overlay, "version", "flatten", "2") == [
        "flattened: Api/v2, 4 files from Api/v1, 1 mark removed"
    ]
    expected = {name: text for name, text in base.items() if "Delete" not in name}
    assert files(overlay / "Api/v2") == expected | {
        "version.toml": '# the second\nstatus = "draft"\n',
        "User/[id]/Get.py": "def handler(request): return 2\n",
    }
    assert files(overlay / "Api/v1") == base
    (line,) = run(forked, overlay, "version", "flatten", "2", code=2)
    assert line.endswith("Version 'v2' inherits from no version; it is a copy already")


def test_a_flattened_version_without_other_settings_has_no_version_file(
    forked: Executable, root: Path
):
    run(forked, root, "version", "create", "2", "--overlay")
    run(forked, root, "version", "flatten", "2")
    assert files(root / "Api/v2") == files(root / "Api/v1")


def test_a_version_is_deleted_unless_another_one_inherits_it(forked: Executable, overlay: Path):
    (line,) = run(forked, overlay, "version", "delete", "1", code=2)
    assert line.endswith(
        "Version 'v1' cannot be deleted, v2 inherits from it; run 'treefold version flatten 2'"
        " first, or write serve = false in Api/v1/version.toml"
    )
    run(forked, overlay, "version", "flatten", "2")
    assert run(forked, overlay, "version", "delete", "1") == ["deleted: Api/v1, 5 files"]
    assert sorted(path.name for path in overlay.iterdir()) == ["Api"]
    assert sorted(path.name for path in (overlay / "Api").iterdir()) == ["v2"]
    assert run(forked, overlay, "check")[-1] == "3 routes: 0 duplicate, 0 broken, 0 skipped"
    run(forked, overlay, "version", "delete", "1", code=2)


def test_a_copy_of_an_overlay_is_complete(forked: Executable, overlay: Path):
    assert run(forked, overlay, "version", "create", "3") == [
        "created: Api/v3 from Api/v2, 4 files, imports rewritten in 0"
    ]
    assert sorted(files(overlay / "Api/v3")) == [
        "Health/Get.py",
        "User/Get.py",
        "User/Services/names.py",
        "User/[id]/Get.py",
    ]
    run(forked, overlay, "version", "create", "4", "--from", "2", "--empty")
    assert sorted(files(overlay / "Api/v4")) == [
        "Health/Get.py",
        "User/Get.py",
        "User/[id]/Get.py",
    ]


def test_a_data_file_that_inherited_code_does_not_read_is_reported(
    forked: Executable, overlay: Path
):
    reading = (
        "from pathlib import Path\n\nTEXT = Path(__file__).with_name('mail.txt').read_text()\n\n\n"
        "def handler(request):\n    return TEXT\n"
    )
    write(overlay, {"v1/Mail/Get.py": reading, "v1/Mail/mail.txt": "one"})
    run(forked, overlay, "check")
    write(overlay, {"v2/Mail/mail.txt": "two"})

    found = "\n".join(run(forked, overlay, "check", code=1))

    assert (
        "Api/v1/Mail/Get.py reads files beside itself, which are those of v1; give v2 a file of its"
        " own in its place, or remove Api/v2/Mail/mail.txt"
    ) in found
    write(overlay, {"v2/Mail/Get.py": reading})
    assert "reads files beside itself" not in "\n".join(run(forked, overlay, "check"))
