"""What a condition needs of the machine, and how to get it. Nothing is installed from here."""

import subprocess
import sys
from os import environ, geteuid
from pathlib import Path
from shutil import which

from suites import ROOT, pyenv_versions

from elsewhere.conditions import Condition

CONFINE = Path(__file__).with_name("confine.py")
LOCALES = Path("/usr/share/i18n/locales")


def missing_needs(condition: Condition) -> list[str]:
    """Return what is missing for a condition, each with the way to get it."""
    if sys.platform != "linux":
        return ["Linux"]
    found: list[str] = []
    if condition.clock and not which("cc"):
        found.append("a C compiler named cc (apt-get install gcc libc6-dev)")
    if condition.language and not (which("localedef") and (LOCALES / condition.language).exists()):
        found.append(f"the source of the locale {condition.language} (apt-get install locales)")
    if condition.place != "checkout" and not (ROOT / ".git").exists():
        found.append("a clone of the repository, this is an archive")
    if condition.place != "checkout" and not starting_interpreter(condition):
        whose = " that the user nobody may run" if becomes_nobody(condition) else ""
        found.append(f"Python {condition.python or '3.11 or later'}{whose}, on the search path")
    if condition.confine and (message := confine_failure(condition)):
        found.append(message)
    return found


def becomes_nobody(condition: Condition) -> bool:
    """Return True if root runs this; any other user is plain enough."""
    return condition.plain_user and geteuid() == 0


def confine_failure(condition: Condition) -> str:
    done = subprocess.run(
        [sys.executable, CONFINE, *condition.confine, "--", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr.strip() if done.returncode else ""


def starting_interpreter(condition: Condition) -> Path | None:
    """Return an interpreter to start `tools/run.py` with: of a version, or that a user may run."""
    wanted = condition.python
    names = [f"python{wanted}"] if wanted else [sys.executable, "python3"]
    folders = environ["PATH"].split(":")
    found = (which(name, path=folder) for name in names for folder in folders)
    user = ["--user", "nobody"] if becomes_nobody(condition) else []
    real = (real_interpreter(Path(each), user, wanted) for each in found if each)
    return next(filter(None, real), None)


def real_interpreter(candidate: Path, user: list[str], wanted: str) -> Path | None:
    """Return the interpreter itself, neither a link of an environment nor a shim of pyenv."""
    program = (
        "import os, sys, ensurepip; sys.version_info < (3, 11) and sys.exit(1);"
        " print(os.path.realpath(sys.executable))"
    )
    variables = {**environ, "PYENV_VERSION": ":".join(pyenv_versions(wanted))} if wanted else None
    done = subprocess.run(
        [sys.executable, CONFINE, *user, "--", candidate, "-c", program],
        cwd="/",
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    return None if done.returncode else Path(done.stdout.strip())
