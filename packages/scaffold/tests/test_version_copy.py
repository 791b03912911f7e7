"""`version create`: the files of a new version, written completely or not at all (S-125)."""

import errno
import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from treefold_scaffold import ScaffoldError, plan_version, write_version
from treefold_scaffold._templates import EMPTY_HANDLER, EMPTY_SOCKET

HANDLER = "from Api.v1.User.Services.names import name\n\n\nasync def handler(request):\n    ...\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put(tmp_path, "v1/User/[id]/Get.py", HANDLER)
    put(tmp_path, "v1/User/Services/names.py", "name = 'v1'  # Api.v1\n")
    put(tmp_path, "v1/Chat/Ws.py", "async def handler(websocket): ...\n")
    put(tmp_path, "v1/Mail/welcome.html", "<p>Api.v1</p>")
    return tmp_path


def put(root: Path, name: str, text: str | bytes) -> Path:
    file = root / "Api" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def make(root: Path, target: str = "2", *, source: str | None = None, empty: bool = False) -> Path:
    return write_version(root, plan_version(root, target, source=source, empty=empty))


def tree(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


def test_the_new_version_uses_its_own_services(root: Path):
    before = tree(root / "Api/v1")
    assert make(root) == root / "Api/v2"
    changed = {"User/[id]/Get.py": HANDLER.replace("Api.v1", "Api.v2")}
    assert tree(root / "Api/v2") == before | changed
    assert tree(root / "Api/v1") == before
    assert sorted(path.name for path in root.iterdir()) == ["Api"]


def test_type_stubs_mean_the_new_version_too(root: Path):
    put(root, "v1/User/Services/names.pyi", "from Api.v1.User import types\n")
    assert tree(make(root))["User/Services/names.pyi"] == "from Api.v2.User import types\n"


def test_the_latest_version_is_copied_by_number(root: Path):
    put(root, "v10/A/Get.py", "ten = 1")
    put(root, "v9/A/Get.py", "nine = 1")
    assert tree(make(root, "11")) == {"A/Get.py": "ten = 1"}
    assert tree(make(root, "v12", source="9")) == {"A/Get.py": "nine = 1"}
    assert "User/[id]/Get.py" in tree(make(root, "0", source="v1"))


def test_an_empty_version_has_the_endpoints_only(root: Path):
    put(root, "v1/Services/Get.py", "x")
    put(root, "v1/broken/Get.py", "this is = = not Python")
    assert tree(make(root, empty=True)) == {
        "User/[id]/Get.py": EMPTY_HANDLER,
        "broken/Get.py": EMPTY_HANDLER,
        "Chat/Ws.py": EMPTY_SOCKET,
    }


@pytest.mark.parametrize(
    ("target", "source", "message"),
    [
        ("1", None, "Target 'Api/v1' exists; choose another number"),
        ("v1", None, "Target 'Api/v1' exists"),
        ("3", None, "Target 'Api/V3' exists"),
        ("4", None, "Target 'Api/v04' exists"),
        ("2", "7", "No version 'v7' in 'Api'"),
        ("2", "../x", "Version must be a number, got '../x'; write it like '2'"),
        ("../2", None, "Version must be a number, got '../2'"),
        ("v", None, "Version must be a number, got 'v'"),
        ("-1", None, "Version must be a number, got '-1'"),
        ("01", None, "Version must be a number, got '01'"),
        ("\u0662", None, "Version must be a number, got '\u0662'"),
        ("2\n", None, r"Version must be a number, got '2\n'"),
        ("9" * 5000, None, "Version must be a number, got '999"),
        ("", None, "Version must be a number, got ''"),
    ],
)
def test_a_wrong_version_is_refused(root: Path, target: str, source: str | None, message: str):
    put(root, "V3/a.py", "")
    put(root, "v04/a.py", "")
    before = tree(root)
    with pytest.raises(ScaffoldError) as caught:
        make(root, target, source=source)
    assert str(caught.value).startswith(message)
    assert tree(root) == before


def test_without_a_version_there_is_nothing_to_copy(tmp_path: Path):
    with pytest.raises(ScaffoldError, match="No folder 'Api'"):
        plan_version(tmp_path, "2")
    (tmp_path / "Api").mkdir()
    with pytest.raises(ScaffoldError, match="No version to copy in 'Api'; make the first with"):
        plan_version(tmp_path, "2")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b"x = 1\ny = = 2\n", "'Api/v1/bad.py', line 2: invalid syntax; mend it first"),
        (b"x = '\xff'\n", "'Api/v1/bad.py', line 1: "),
        (b"# coding: nonsense\n", "'Api/v1/bad.py', line 1: "),
        (b"x = 1\x00", "'Api/v1/bad.py', line 1: "),
        (b"(" * 400 + b"x" + b")" * 400, "'Api/v1/bad.py', line 1: "),
    ],
)
def test_a_file_that_is_no_python_stops_everything(root: Path, source: bytes, message: str):
    put(root, "v1/bad.py", source)
    with pytest.raises(ScaffoldError) as caught:
        make(root)
    assert str(caught.value).startswith(message)
    assert sorted(os.listdir(root / "Api")) == ["v1"]


def test_bytecode_is_left_behind_and_modes_are_kept(root: Path):
    put(root, "v1/__pycache__/x.cpython-311.pyc", b"\x00")
    put(root, "v1/y.pyc", b"\x00")
    put(root, "v1/run.sh", "#!/bin/sh").chmod(0o755)
    put(root, "v1/User/Post.py", "x").chmod(0o600)
    (root / "Api/v1/Mail").chmod(0o555)
    (root / "Api/v1").chmod(0o750)
    new = make(root)
    assert not (new / "__pycache__").exists()
    assert not (new / "y.pyc").exists()
    modes = [
        stat.S_IMODE((new / name).stat().st_mode) for name in ("run.sh", "User/Post.py", "Mail", "")
    ]
    assert modes == [0o755, 0o600, 0o555, 0o750]


def test_links_lead_into_the_new_version_or_where_they_led(root: Path):
    (root / "shared.py").write_text("x")
    v1 = root / "Api/v1"
    (v1 / "Chat/relative").symlink_to("../User")
    (v1 / "Chat/absolute").symlink_to(v1 / "User")
    (v1 / "Chat/by-name.py").symlink_to("../../v1/User/[id]/Get.py")
    (v1 / "Chat/outside.py").symlink_to("../../../shared.py")
    (v1 / "Chat/nowhere").symlink_to("missing")
    (v1 / "Chat/loop").symlink_to("loop")
    new = make(root)
    led = {
        name: os.readlink(new / "Chat" / name)
        for name in os.listdir(new / "Chat")
        if name != "Ws.py"
    }
    assert led == {
        "relative": "../User",
        "absolute": "../User",
        "by-name.py": "../User/[id]/Get.py",
        "outside.py": "../../../shared.py",
        "nowhere": "missing",
        "loop": "loop",
    }


def test_what_is_no_file_is_refused_and_not_opened(root: Path):
    os.mkfifo(root / "Api/v1/pipe.py")
    with pytest.raises(ScaffoldError, match=r"'Api/v1/pipe.py' is neither file, folder nor link"):
        make(root)


def test_names_that_are_not_unicode_are_copied(root: Path):
    name = os.fsdecode(b"caf\xe9.txt")
    put(root, f"v1/{name}", "x")
    assert (make(root) / name).read_text() == "x"


def test_a_name_that_another_file_imports_stays(root: Path):
    put(root, "v1/base.py", "from Api import v1\n")
    put(root, "v1/User/Post.py", "from Api.v1.base import v1\nx = v1.a\n")
    new = make(root)
    assert (new / "base.py").read_text() == "from Api import v2 as v1\n"
    assert (new / "User/Post.py").read_text() == "from Api.v2.base import v1\nx = v1.a\n"


def test_a_failure_leaves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch):
    plan = plan_version(root, "2")
    written: list[Path] = []

    def full(self: Path, data: bytes) -> int:
        written.append(self)
        if len(written) > 2:
            raise OSError(errno.ENOSPC, "No space left on device", os.fspath(self))
        with self.open("wb") as stream:
            return stream.write(data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        write_version(root, plan)
    assert len(written) == 3
    assert [path.name for path in root.iterdir()] == ["Api"]
    assert os.listdir(root / "Api") == ["v1"]


def test_a_folder_that_takes_nothing_is_named_as_the_version():
    with tempfile.TemporaryDirectory() as folder:  # not below a folder private to this user
        root = Path(folder)
        put(root, "v1/Get.py", HANDLER)
        plan = plan_version(root, "2")
        root.chmod(0o555)
        user = os.geteuid()
        if user == 0:  # the superuser writes everywhere
            os.seteuid(65534)
        try:
            with pytest.raises(PermissionError) as caught:
                write_version(root, plan)
        finally:
            os.seteuid(user)
            root.chmod(0o755)
    assert caught.value.filename == str(root / "Api/v2")


def test_a_target_that_appeared_meanwhile_is_leftlock_api(root: Path):
    plan = plan_version(root, "2")
    (root / "Api/v2").mkdir()
    with pytest.raises(ScaffoldError, match="exists"):
        write_version(root, plan)
    assert os.listdir(root / "Api/v2") == []
    assert [path.name for path in root.iterdir()] == ["Api"]


_KILLED = """\
import os, signal, sys
from pathlib import Path
import treefold_scaffold
plan = treefold_scaffold.plan_version(sys.argv[1], "2")
def killed(self, target):
    os.kill(os.getpid(), signal.SIGKILL)
Path.rename = killed
treefold_scaffold.write_version(sys.argv[1], plan)
"""


def test_a_killed_run_leaves_a_hidden_folder_that_the_next_removes(root: Path):
    done = subprocess.run([sys.executable, "-c", _KILLED, root], check=False)
    assert done.returncode == -signal.SIGKILL
    assert os.listdir(root / "Api") == ["v1"]
    left = [path.name for path in root.iterdir() if path.name != "Api"]
    assert [name.startswith(".treefold-version-") for name in left] == [True]
    assert "User/[id]/Get.py" in tree(make(root))
    assert [path.name for path in root.iterdir()] == ["Api"]


_HOLDS_THE_LOCK = """\
import sys
import tempfile
from pathlib import Path
from treefold_scaffold._version_copy import lock_api
with lock_api(Path(sys.argv[1], "Api")):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_two_at_a_time_do_not_remove_each_other(root: Path):
    command = [sys.executable, "-c", _HOLDS_THE_LOCK, root]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(ScaffoldError, match="Another process is making a version"):
            make(root)
    make(root)
