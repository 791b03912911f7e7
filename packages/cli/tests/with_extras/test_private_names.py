"""Undocumented names of typer and uvicorn: each is there, and each is used.

An update of these packages may take the names of the table away. A test fails for each name that is
gone, with its use and the versions on which it was checked. With httptools installed, which one of
the two parsers needs.
"""

import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import treefold_cli

SOURCES = Path(treefold_cli.__file__).parent

CHECKED = {"typer": "0.27.0 and 0.29.2", "uvicorn": "0.51.0 and 0.54.0"}
"""Versions on which every name of a package was there."""


@dataclass(frozen=True, slots=True)
class PrivateNames:
    """Undocumented names of one class of another package.

    Attributes:
        owner: the class, as `module:name`.
        names: methods of the class, and attributes that its `__init__` sets.
        users: the modules of this package that use them.
        use: the reason.
    """

    owner: str
    names: tuple[str, ...]
    users: tuple[str, ...]
    use: str


_CALLBACKS = ("connection_made", "connection_lost", "data_received", "handle_websocket_upgrade")
_STATE = ("config", "cycle", "flow", "limit_concurrency", "tasks", "timeout_keep_alive_task")
_TIMEOUTS = ("_server.connection_timeouts", "_server.overload")

PRIVATE_NAMES = (
    PrivateNames(
        "typer.core:TyperGroup",
        ("get_params", "list_commands", "get_command", "resolve_command"),
        ("_console.application",),
        "commands are imported when their name is typed",
    ),
    PrivateNames(
        "typer.core:TyperOption",
        ("process_value",),
        ("_console.application",),
        "text is passed on without the import of pydantic",
    ),
    PrivateNames(
        "uvicorn.protocols.http.h11_impl:H11Protocol",
        (*_CALLBACKS, *_STATE),
        ("_server.h11_protocol", *_TIMEOUTS),
        "time limits and the limit of concurrent requests",
    ),
    PrivateNames(
        "uvicorn.protocols.http.httptools_impl:HttpToolsProtocol",
        (
            *(*_CALLBACKS, *_STATE, "pipeline"),
            *("on_header", "on_headers_complete", "on_body", "on_message_complete"),
            "on_response_complete",
        ),
        ("_server.http_protocol", *_TIMEOUTS),
        "time limits, the limit of concurrent requests and of an unfinished head",
    ),
    PrivateNames(
        "uvicorn.protocols.http.httptools_impl:RequestResponseCycle",
        ("scope", "more_body", "response_started", "response_complete", "waiting_for_100_continue"),
        ("_server.connection_timeouts",),
        "a body is late only while it is read, and an error is sent only before a response",
    ),
    PrivateNames(
        "uvicorn.protocols.http.flow_control:FlowControl",
        ("read_paused", "pause_reading", "resume_reading"),
        ("_server.connection_timeouts", "_server.http_protocol"),
        "a client is not slow while the application does not read",
    ),
    PrivateNames(
        "uvicorn.protocols.websockets.websockets_sansio_impl:WebSocketsSansIOProtocol",
        (
            *("run_asgi", "data_received", "pause_writing", "resume_writing"),
            *("handshake_initiated", "handshake_complete", "close_sent", "read_paused"),
        ),
        ("_server.socket_protocol",),
        "a handshake that cannot be read is answered, and a client that does not read is paused",
    ),
    PrivateNames(
        "uvicorn.server:Server",
        ("startup", "shutdown", "on_tick", "capture_signals", "handle_exit", "server_state"),
        ("_server.server",),
        "a stop signal ends with code 0, and a restart finishes the requests in progress",
    ),
    PrivateNames(
        "uvicorn.server:ServerState",
        ("connections", "tasks", "default_headers", "total_requests"),
        ("_server.server",),
        "connections close after their response, before a restart",
    ),
    PrivateNames(
        "uvicorn.supervisors.multiprocess:Process",
        (
            *("process", "server", "target", "start", "ping", "is_ready", "parent_conn"),
            *("terminate", "kill", "join", "exitcode"),
        ),
        ("_server.workers",),
        "the supervisor starts, asks, ends and replaces the worker processes",
    ),
    PrivateNames(
        "uvicorn:Config",
        ("encoded_headers", "loaded_app"),
        ("_server.server", "_server.overload"),
        "responses close their connection before a restart, or answer 503 above the limit",
    ),
)


def names_set_by(owner: type) -> Iterator[str]:
    """Yield the methods of a class, and the attributes that its constructors set."""
    yield from dir(owner)
    for base in inspect.getmro(owner):
        for method in vars(base).values():
            if inspect.isfunction(method):
                yield from method.__code__.co_names
        yield from inspect.get_annotations(base)


@pytest.mark.parametrize("entry", PRIVATE_NAMES, ids=lambda entry: entry.owner)
def test_every_private_name_is_there(entry: PrivateNames) -> None:
    module, _, name = entry.owner.partition(":")
    package = module.partition(".")[0]
    remedy = f"{package} was checked on {CHECKED[package]}; needed because {entry.use}"
    owner = getattr(importlib.import_module(module), name, None)
    assert owner is not None, f"{entry.owner} is gone: {remedy}"
    gone = sorted(set(entry.names) - set(names_set_by(owner)))
    assert not gone, f"{entry.owner} has no {', '.join(gone)} any more: {remedy}"


@pytest.mark.parametrize("entry", PRIVATE_NAMES, ids=lambda entry: entry.owner)
def test_every_private_name_is_used_where_the_table_says(entry: PrivateNames) -> None:
    sources = [SOURCES.joinpath(*user.split(".")).with_suffix(".py") for user in entry.users]
    text = "\n".join(source.read_text() for source in sources)
    assert [name for name in entry.names if name not in text] == []


def test_a_name_that_is_gone_fails_with_its_use_and_the_checked_versions() -> None:
    entry = PrivateNames("uvicorn:Config", ("never_there",), (), "of this test")
    message = (
        "uvicorn:Config has no never_there any more: uvicorn was checked on .*; needed because"
    )
    with pytest.raises(AssertionError, match=message):
        test_every_private_name_is_there(entry)
