"""`python tools/lock_pythons.py [--python VERSION ...]`: the lock of the sample on other machines.

For each version of Python, `treefold contract check` runs in a copy of the sample in two
environments of their own: with what the sample needs, and with all optional engines beside it. The
lock that lies in git must be equal to the byte in each. Without `--python`, on the interpreter that
runs this.
"""

import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from suites import ROOT, SUITES, arguments, uv, virtual_environment

SAMPLE = ROOT / "tests-integration" / "sample"
ENGINES = {
    "needed": {"http": "contract"},
    "all": {
        "http": "contract,files,redis,pydantic,fast,argon2,jwt,compress,metrics,tracing",
        "orm": "postgres",
        "server": "fast",
        "cli": "watch",
    },
}
"""Extras by package, by the name of the environment."""


def main() -> None:
    names, chosen, options = arguments(sys.argv[1:], "--python")
    if names or options:
        sys.exit(f"Only --python VERSION is an option, got {' '.join([*names, *options])!r}")
    failed = False
    with tempfile.TemporaryDirectory(prefix="lock-pythons-") as name:
        for version in chosen["--python"] or [platform.python_version()]:
            for engines in ENGINES:
                failed |= check(version, engines, Path(name, f"{version}-{engines}"))
    sys.exit(failed)


def check(version: str, engines: str, folder: Path) -> bool:
    """Print the verdict in one environment; return True if the lock is another there."""
    python = virtual_environment(folder / "environment", version)
    extras = ENGINES[engines]
    members = [
        f"{ROOT / 'packages' / each}" + (f"[{extras[each]}]" if each in extras else "")
        for each in SUITES
        if each != "docs-ui"
    ]
    uv("pip", "install", "--quiet", "--python", python, *members)
    root = folder / "sample"
    shutil.copytree(SAMPLE, root, ignore=shutil.ignore_patterns("__pycache__", "*.sqlite3*"))
    command = [python, "-m", "treefold", "contract", "check"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    said = (done.stdout + done.stderr).strip().splitlines()
    found = next((line for line in said if "routes.lock" in line), said[-1])
    print(f"Python {version}, engines {engines}: {found}", flush=True)
    return bool(done.returncode)


if __name__ == "__main__":
    main()
