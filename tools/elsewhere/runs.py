"""Run the suites of one condition, and look for what each leaves behind."""

import shlex
import subprocess
import tempfile
import time
from pathlib import Path

from elsewhere.conditions import Condition
from elsewhere.leftovers import Traces, adopt_orphans, end_orphans, read_traces
from elsewhere.worlds import World, make_world

LIMIT = 60 * 60.0
"""Seconds after which a suite counts as one that hangs."""


def run_condition(condition: Condition, only: str = "", options: str = "") -> str:
    """Run the suites of a condition, also after one that has failed; return a line about them.

    Args:
        only: a word of the suites that are run, such as `pages`.
        options: what is typed after the words of a suite.
    """
    if not (chosen := [suite for suite in condition.runs if only in suite]):
        return f"{condition.name}: FAILED, no suite has the word {only!r}"
    began = time.monotonic()
    print(f"\n== {condition.name}: {condition.changes}", flush=True)
    adopt_orphans()
    findings: list[str] = []
    with tempfile.TemporaryDirectory(prefix="elsewhere-", ignore_cleanup_errors=True) as name:
        world = make_world(condition, Path(name))
        for suite in chosen:
            findings += run_suite(world, f"{suite} {options}".strip())
    minutes = (time.monotonic() - began) / 60
    outcome = "FAILED" + "".join(f"\n    {line}" for line in findings) if findings else "passed"
    return f"{condition.name}, {minutes:.1f} minutes: {outcome}"


def run_suite(world: World, suite: str) -> list[str]:
    """Return what was wrong: the exit code, what was left, or nothing."""
    words = shlex.split(suite)
    name = " ".join(words[:2])
    print(f"\n-- {world.condition.name}: {suite}", flush=True)
    if code := world.prepare(words):
        return [f"{name}: no environment, exit code {code}"]
    before = world_traces(world)
    try:
        code = world.run(words, LIMIT)
        findings = [f"{name}: exit code {code}"] if code else []
    except subprocess.TimeoutExpired:
        findings = [f"{name}: did not end within {LIMIT / 60:.0f} minutes"]
    finally:  # also where this command itself is stopped
        left = end_orphans()
    left += before.added(world_traces(world))
    return [*findings, *(f"{name} left behind {line}" for line in left)]


def world_traces(world: World) -> Traces:
    return read_traces(
        world.root,
        world.git,
        temporary=Path(world.variables["TMPDIR"]),
        servers=world.variables if world.condition.servers else None,
        kept=world.kept,
    )
