"""A startup hook that hangs: one stop signal cancels it, and what had started is shut down."""

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Project = Callable[..., Path]
Start = Callable[..., Any]

HOOKS = """
import asyncio, time

async def first():
    pass

{hook}

def stop():
    print("stopped what had started", flush=True)

on_startup, on_shutdown = [first, warm_up], [stop]
"""
WAITS = """
async def warm_up():
    print("warming up", flush=True)
    await asyncio.Event().wait()
"""
BLOCKS = WAITS.replace("await asyncio.Event().wait()", "time.sleep(600)")
IN_THREAD = BLOCKS.replace("async def", "def")
IN_POOL = WAITS.replace("asyncio.Event().wait()", "asyncio.to_thread(time.sleep, 600)")


@pytest.mark.parametrize(
    ("hook", "workers"),
    [(WAITS, "1"), (BLOCKS, "1"), (IN_THREAD, "1"), (IN_POOL, "1"), (BLOCKS, "2")],
    ids=["waits", "blocks", "thread", "pool", "workers"],
)
def test_serve_obeys_one_stop_signal(start: Start, project: Project, hook: str, workers: str):
    root = project("v1/Health/Get.py")
    (root / "hooks.py").write_text(HOOKS.format(hook=hook))
    server = start("serve", "--workers", workers, cwd=root)
    for _ in range(int(workers)):
        server.wait_for("warming up")
    began = time.monotonic()
    assert server.stop(signal.SIGTERM) == 0
    assert time.monotonic() - began < 15  # it would be given up after a minute
    assert server.output.count("stopped what had started") == int(workers)
    assert server.output.count("startup hook warm_up was cancelled") == int(workers)
    assert "Traceback" not in server.output
    assert "Error" not in server.output


def test_a_stop_signal_ends_the_boot_of_a_worker(start: Start, project: Project):
    root = project("v1/Health/Get.py", "v1/User/Get.py")
    text = "import time\nprint('importing', flush=True)\ntime.sleep(600)\n"
    for name in ("Health", "User"):
        (root / f"Api/v1/{name}/Get.py").write_text(text)
    server = start("serve", "--workers", "2", cwd=root)
    server.wait_for("importing")
    server.wait_for("importing")
    began = time.monotonic()
    assert server.stop(signal.SIGTERM) == 0
    assert time.monotonic() - began < 15
    assert server.output.count("importing") == 2  # no other file was tried
    assert "failed to load" not in server.output
    assert "Traceback" not in server.output


@pytest.mark.parametrize("hook", [WAITS, BLOCKS], ids=["waits", "blocks"])
def test_dev_names_it_and_obeys_one_control_c(start: Start, project: Project, hook: str):
    root = project("v1/Health/Get.py")
    (root / "hooks.py").write_text(HOOKS.format(hook=hook))
    server = start("dev", cwd=root)
    server.wait_for("startup hook warm_up has not ended after 1 s; requests are answered with 503")
    assert server.stop(signal.SIGINT, group=True) == 0
    assert server.output.count("stopped what had started") == 1
    assert "Traceback" not in server.output


def test_dev_names_the_hook_that_runs_now(start: Start, project: Project):
    root = project("v1/Health/Get.py")
    hooks = HOOKS.format(hook=WAITS).replace("    pass\n", "    await asyncio.sleep(1.5)\n", 1)
    (root / "hooks.py").write_text(hooks)
    server = start("dev", cwd=root)
    server.wait_for("startup hook first has not ended after 1 s")
    server.wait_for("startup hook warm_up has not ended after 1 s")
    assert server.stop(signal.SIGINT, group=True) == 0


def test_a_hook_that_cancels_itself_has_failed(start: Start, project: Project):
    hook = "async def warm_up():\n    raise asyncio.CancelledError\n"
    (project("v1/Health/Get.py") / "hooks.py").write_text(HOOKS.format(hook=hook))
    server = start("serve", cwd=Path.cwd())
    server.drain()
    assert server.process.wait() == 1
    assert "startup hook warm_up failed" in server.output
    assert "stopped what had started" in server.output
