"""Lines at the end of a process, in forked ones, and on streams that fail (S-91, R-06, R-29)."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

IMPORTS = """
import os, sys, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # a fork while threads run, from 3.12
from treefold_logging import configure, flush, get_logger, log_request
def log(status=200, id="x"):
    log_request("GET", "/", status, 0.001, request_id=str(id))
"""


def run(
    code: str, *, stderr: int = subprocess.PIPE, imports: str = IMPORTS
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", imports + code],
        stderr=stderr,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=60,
        check=False,
    )


def test_s91_ten_thousand_lines_and_an_exit_are_ten_thousand_lines() -> None:
    result = run("for n in range(10_000): log(id=n)")
    ids = [line.split("id=")[1].split()[0] for line in result.stderr.splitlines()]
    assert ids == [str(number) for number in range(10_000)]


def test_s91_sys_exit_and_an_uncaught_exception_lose_nothing() -> None:
    assert run("log(); sys.exit(3)").stderr.count("\n") == 1
    lines = run("log(); raise ValueError").stderr.splitlines()
    assert lines.count("Traceback (most recent call last):") == 1
    assert [line[:12] for line in lines if line.startswith("[")] == ["[INFO] GET /"]


def test_s91_an_abrupt_end_loses_no_error_line_and_nothing_before_it() -> None:
    result = run("for n in range(100): log(id=n)\nlog(500, id='last'); os._exit(1)")
    lines = result.stderr.splitlines()
    assert len(lines) == 101
    assert lines[-1].startswith("[ERROR] GET / 500 1.00ms id=last ")


def test_s91_lines_of_exit_handlers_are_written_whenever_they_run() -> None:
    register = "import atexit; atexit.register(lambda: log(id='at_exit'))\n"
    for code, imports in ((f"{register}log()", IMPORTS), ("log()", register + IMPORTS)):
        lines = run(code, imports=imports).stderr.splitlines()
        assert len(lines) == 2
        assert " id=at_exit " in lines[-1]


def test_s91_a_signal_handler_may_log_while_lines_are_written() -> None:
    code = """
import signal
signal.signal(signal.SIGALRM, lambda *_: (log(500, id="signal"), log(id="signal")))
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
for n in range(2000):
    log(500 if n % 10 == 0 else 200, id="main")
signal.setitimer(signal.ITIMER_REAL, 0)
"""
    result = run(code)
    assert result.returncode == 0
    lines = result.stderr.splitlines()
    assert sum("id=main " in line for line in lines) == 2000
    assert all(line.endswith(" payload=-") for line in lines)


def test_r29_a_forked_child_has_its_own_buffer_lock_and_thread() -> None:
    code = """
log(id="before")
for child in range(4):
    if os.fork() == 0:
        log(id=f"child{child}")
        log(500, id=f"error{child}")
        log(id=f"last{child}")
        flush()
        os._exit(0)
for child in range(4):
    os.wait()
log(id="after")
"""
    result = run(code)
    ids = sorted(line.split("id=")[1].split()[0] for line in result.stderr.splitlines())
    expected = [f"{kind}{child}" for kind in ("child", "error", "last") for child in range(4)]
    assert ids == sorted([*expected, "before", "after"])


def test_r29_a_fork_while_other_threads_log_leaves_the_child_usable() -> None:
    code = """
stop = threading.Event()
def work():
    while not stop.is_set():
        log(500, id="thread")
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
children = []
for _ in range(20):
    child = os.fork()
    if child == 0:
        log(500, id="child")
        os._exit(0 if flush(5) else 1)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
stop.set()
for thread in threads: thread.join()
print(codes)
"""
    result = run(code)
    assert result.stdout.split("\n")[0] == str([0] * 20)
    assert result.stderr.count("id=child ") == 20


def test_r06_requests_go_on_when_the_disk_is_full() -> None:
    with open("/dev/full", "w") as full:
        result = run(
            "for n in range(50): log(500)\nlog(); print('alive', flush())", stderr=full.fileno()
        )
    assert result.stdout == "alive False\n"
    assert result.returncode == 0


def test_requests_go_on_when_standard_error_is_closed() -> None:
    code = "os.close(2); log(500); sys.stderr = None; log(500); log(); print('alive', flush())"
    assert run(code).stdout == "alive False\n"


def test_requests_go_on_when_the_reader_has_gone() -> None:
    read, write = os.pipe()
    os.close(read)
    result = run("for n in range(50): log(500)\nprint('alive')", stderr=write)
    os.close(write)
    assert result.stdout == "alive\n"


def test_an_unread_pipe_blocks_no_request() -> None:
    read, write = os.pipe()
    code = """
for n in range(30_000): log(id='x' * 100)
log(500)
print('alive', flush=True)
os._exit(0)
"""
    result = run(code, stderr=write)
    os.close(write)
    os.close(read)
    assert result.stdout == "alive\n"


def test_s91_a_process_stopped_by_a_signal_it_handles_loses_nothing(tmp_path: Path) -> None:
    code = """
import signal
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
for n in range(5000): log(id=n)
os.kill(os.getpid(), signal.SIGTERM)
"""
    with (tmp_path / "log").open("w") as log:
        assert run(code, stderr=log.fileno()).returncode == 0
    assert len((tmp_path / "log").read_text().splitlines()) == 5000


def test_the_idle_thread_uses_no_time() -> None:
    code = """
import time
log(); flush()
time.sleep(0.1)
before = time.process_time()
time.sleep(0.5)
print(time.process_time() - before < 0.005)
"""
    assert run(code).stdout == "True\n"


def test_importing_starts_no_thread_and_writes_nothing() -> None:
    result = run("print(threading.active_count())")
    assert (result.stdout, result.stderr) == ("1\n", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_s91_a_killed_process_has_written_its_error_lines(number: signal.Signals) -> None:
    result = run(f"log(500); os.kill(os.getpid(), {int(number)})")
    assert result.stderr.startswith("[ERROR] GET / 500 ")
