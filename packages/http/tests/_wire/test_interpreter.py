"""The private names of the interpreter that http uses are there."""

import asyncio
import sys

import pytest

from treefold_http._wire import interpreter


@pytest.mark.parametrize("name", ["_get_running_loop", "_set_running_loop"])
def test_asyncio_has_the_running_loop(name: str) -> None:
    assert hasattr(asyncio, name), (
        f"asyncio of Python {sys.version_info} has no {name}: see {interpreter.__file__}"
    )


@pytest.mark.parametrize("name", ["_leave_task", "_enter_task"])
def test_asyncio_has_what_leaves_a_task(name: str) -> None:
    assert hasattr(asyncio.tasks, name), (
        f"asyncio of Python {sys.version_info} has no {name}: see {interpreter.__file__}"
    )


def test_sys_has_the_frames_of_callers() -> None:
    assert hasattr(sys, "_getframe"), (
        f"this Python has no sys._getframe: see {interpreter.__file__}"
    )


def test_a_line_is_that_of_the_caller() -> None:
    def ask(calls: int) -> str:
        return interpreter.format_caller_location(calls)

    here = interpreter.find_caller_frame(0).f_lineno
    assert ask(0) == f"{__file__}:{here - 2}"
    assert ask(1) == f"{__file__}:{here + 2}"
    assert interpreter.find_caller_frame(0).f_code.co_name == "test_a_line_is_that_of_the_caller"


def test_a_running_loop_is_hidden_for_a_block_and_back_after_an_error() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with interpreter.hide_running_loop(), pytest.raises(RuntimeError, match="no running event"):
            asyncio.get_running_loop()
        with pytest.raises(LookupError), interpreter.hide_running_loop():
            raise LookupError
        assert asyncio.get_running_loop() is loop
        task = asyncio.current_task()
        with interpreter.hide_running_loop():  # as a module that runs a loop in its import
            asyncio.run(asyncio.wait_for(asyncio.sleep(0), 5))
        assert asyncio.current_task() is task

    asyncio.run(main())
