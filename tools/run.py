"""`python3 tools/run.py demo` is `hatch run demo` on a machine that has nothing but Python and pip.

Standard library only. It keeps one environment with a pinned hatch in the user's cache folder and
hands over to it; hatch makes every other environment. What can be run is listed in `hatch.toml`.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

HATCH = "1.18.2"
ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
HOME = CACHE / "treefold" / f"hatch-{HATCH}-py{sys.version_info.major}.{sys.version_info.minor}"
PROGRAMS = HOME / ("Scripts" if os.name == "nt" else "bin")
PYTHON = PROGRAMS / ("python.exe" if os.name == "nt" else "python")


def works() -> bool:
    try:
        done = subprocess.run(
            [PYTHON, "-m", "hatch", "--version"], capture_output=True, text=True, check=False
        )
    except OSError:
        return False
    return done.returncode == 0 and HATCH in done.stdout


def install() -> None:
    print(f"installing hatch {HATCH} into {HOME}", file=sys.stderr, flush=True)
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.parent.mkdir(parents=True, exist_ok=True)
    if not pip_works_after([sys.executable, "-m", "venv", str(HOME)]):
        # Debian without python3-venv: pip may still put virtualenv into a folder of ours.
        shutil.rmtree(HOME, ignore_errors=True)
        tool = HOME.with_name(f"{HOME.name}-virtualenv")
        pip = [sys.executable, "-m", "pip", "install", "-q", "--target", str(tool), "virtualenv"]
        path = {**os.environ, "PYTHONPATH": str(tool)}
        if subprocess.run(pip, check=False).returncode or not pip_works_after(
            [sys.executable, "-m", "virtualenv", "-q", str(HOME)], path
        ):
            sys.exit(
                "This Python has neither venv nor pip; on Debian: apt-get install python3-venv"
            )
    subprocess.run([PYTHON, "-m", "pip", "install", "-q", f"hatch=={HATCH}"], check=True)


def pip_works_after(command: list[str], environment: dict[str, str] | None = None) -> bool:
    made = subprocess.run(command, capture_output=True, env=environment, check=False)
    if made.returncode or not PYTHON.exists():
        return False
    pip = [str(PYTHON), "-m", "pip", "--version"]
    return subprocess.run(pip, capture_output=True, check=False).returncode == 0


def main() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036 - the one file that an older Python may meet
        sys.exit(f"treefold needs Python 3.11 or newer, this is {sys.version.split()[0]}")
    if len(sys.argv) < 2:
        sys.exit("usage: python3 tools/run.py demo|test|SCRIPT [ARGUMENT ...]  (see hatch.toml)")
    if not works():
        install()
    os.chdir(ROOT)
    os.environ["PATH"] = os.pathsep.join([str(PROGRAMS), os.environ.get("PATH", os.defpath)])
    words = [str(PYTHON), "-m", "hatch", "run", *sys.argv[1:]]
    if os.name == "posix":
        os.execv(words[0], words)  # noqa: S606 - become hatch, so that signals reach it
    sys.exit(subprocess.run(words, check=False).returncode)


if __name__ == "__main__":
    main()
