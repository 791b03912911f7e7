"""How much processor time the light commands take over an interpreter that does nothing.

The budgets hold on a machine that is at rest; here they are scaled by what importing some modules
of the standard library takes at the same moment. One round within the budget is enough: a busy
machine spoils some rounds, a heavy import spoils all.
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
ROUNDS = 20


def seconds(command: Sequence[str], cwd: Path) -> float:
    """Processor time of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=cwd, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


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
    rounds: list[str] = []
    for _ in range(ROUNDS):
        bare = seconds([sys.executable, "-c", "pass"], root)
        busy = max(1.0, (seconds([sys.executable, "-c", YARDSTICK], root) - bare) / AT_REST)
        taken = seconds([treefold, *arguments.split()], root) - bare
        if taken < budget * busy * 1.25:
            return
        rounds.append(f"{taken * 1000:.0f} ms, machine {busy:.1f} times slower")
    pytest.fail(f"no round within {budget * 1000:.0f} ms: {rounds}")
