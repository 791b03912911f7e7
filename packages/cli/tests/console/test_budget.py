"""How much processor time the light commands take over an interpreter that does nothing.

The budgets hold on a machine that is at rest; here they are scaled by what importing some modules
of the standard library takes now: a busy machine does not fail them, a heavy import does.
"""

import resource
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

Project = Callable[..., Path]

YARDSTICK = "import argparse, asyncio, email.message, http.client, json, logging, xml.dom.minidom"
AT_REST = 0.070
"""Seconds that the yardstick takes where the budgets were set."""
RUNS = 7


def seconds(command: Sequence[str], cwd: Path) -> float:
    """Processor time of the best of a few runs."""
    times: list[float] = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd=cwd, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
        times.append(user + system)
    return min(times)


@pytest.mark.parametrize(
    ("arguments", "budget"),
    [
        ("--version", 0.060),
        ("routes", 0.150),
        ("version list", 0.150),
        ("create health get", 0.150),
        ("why get /v1/missing", 0.150),
        ("why get /v1/health", 0.290),  # loads the file that serves, as the server does
    ],
)
def test_a_light_command_starts_within_its_budget(project: Project, arguments: str, budget: float):
    root = project("v1/Health/Get.py", "v1/User/[id]/Get.py")
    treefold = f"{sysconfig.get_path('scripts')}/treefold"
    bare = seconds([sys.executable, "-c", "pass"], root)
    busy = max(1.0, (seconds([sys.executable, "-c", YARDSTICK], root) - bare) / AT_REST)
    taken = seconds([treefold, *arguments.split()], root) - bare
    assert taken < budget * busy * 1.25, f"{taken * 1000:.0f} ms, machine {busy:.1f} times slower"
