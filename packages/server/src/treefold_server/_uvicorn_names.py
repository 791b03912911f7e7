"""The names of uvicorn that are not documented and that this package leans on: all of them.

Read this before a new version of uvicorn is allowed in the manifest. Nothing imports it at run
time. `tests/test_uvicorn_names.py` holds it against the sources and against the installed uvicorn:
each name is there, each is used, and no module uses another one.
"""

from __future__ import annotations

from dataclasses import dataclass

CHECKED = ("0.51.0", "0.54.0")
"""The oldest and the newest version on which every name was there; the manifest allows no other."""


@dataclass(frozen=True, slots=True)
class UvicornNames:
    """Names of one class of uvicorn.

    Attributes:
        owner: the class, as `module:name`.
        names: its methods and attributes.
        users: the modules of this package that use them.
        use: the reason.
    """

    owner: str
    names: tuple[str, ...]
    users: tuple[str, ...]
    use: str


_CALLBACKS = ("connection_made", "connection_lost", "data_received", "pause_writing")
_UPGRADE = ("handle_websocket_upgrade", "_should_upgrade")
_STATE = (
    *("app", "config", "cycle", "flow", "limit_concurrency", "logger", "loop", "scope"),
    *("tasks", "timeout_keep_alive_task", "transport"),
)

UVICORN_NAMES = (
    UvicornNames(
        "uvicorn.protocols.http.h11_impl:H11Protocol",
        (*_CALLBACKS, *_UPGRADE, *_STATE, "conn", "_unsupported_upgrade_warning"),
        ("_h11_protocol", "_connection_timeouts", "_overload"),
        "time limits, the limit of concurrent requests and of chunk extensions",
    ),
    UvicornNames(
        "uvicorn.protocols.http.httptools_impl:HttpToolsProtocol",
        (
            *(*_CALLBACKS, *_UPGRADE, *_STATE, "pipeline", "parser", "url", "headers"),
            *("on_header", "on_headers_complete", "on_body", "on_message_complete"),
            *("on_response_complete", "expect_100_continue", "_unset_keepalive_if_required"),
        ),
        ("_http_protocol", "_connection_timeouts", "_overload"),
        "time limits, the limits of requests, of an unfinished head and of a pipeline",
    ),
    UvicornNames(
        "uvicorn.protocols.http.h11_impl:RequestResponseCycle",
        (
            *("scope", "more_body", "response_started", "response_complete", "disconnected"),
            *("message_event", "waiting_for_100_continue"),
        ),
        ("_connection_timeouts",),
        "a body is late only while it is read, and an error is sent only before a response",
    ),
    UvicornNames(
        "uvicorn.protocols.http.httptools_impl:RequestResponseCycle",
        (
            *("scope", "more_body", "response_started", "response_complete", "disconnected"),
            *("message_event", "waiting_for_100_continue", "body"),
        ),
        ("_connection_timeouts", "_http_protocol"),
        "the same; and what cannot be read is refused after the responses before it",
    ),
    UvicornNames(
        "uvicorn.protocols.http.flow_control:FlowControl",
        ("read_paused", "pause_reading", "resume_reading", "drain", "_transport"),
        ("_connection_timeouts", "_http_protocol", "_unread_responses"),
        "a client is not slow while the application does not read, and is counted while it is",
    ),
    UvicornNames(
        "uvicorn.protocols.websockets.websockets_sansio_impl:WebSocketsSansIOProtocol",
        (
            *("app", "conn", "transport", "run_asgi", "data_received", "handle_connect"),
            *("read_paused", "handshake_initiated", "handshake_complete", "close_sent"),
        ),
        ("_socket_protocol",),
        "a handshake that cannot be read is answered, and a client that does not read is paused",
    ),
    UvicornNames(
        "uvicorn.server:Server",
        (
            *("config", "servers", "server_state", "started", "should_exit"),
            *("run", "startup", "shutdown", "on_tick", "capture_signals", "handle_exit"),
        ),
        ("_server", "_worker_process"),
        "a stop signal ends with code 0, and a restart finishes the requests in progress",
    ),
    UvicornNames(
        "uvicorn.lifespan.on:LifespanOn",
        ("startup", "main", "startup_failed", "logger"),
        ("_startup",),
        "a stop signal cancels a startup that hangs",
    ),
    UvicornNames(
        "uvicorn.server:ServerState",
        ("connections", "tasks", "default_headers", "total_requests"),
        ("_server",),
        "connections close after their response, before the end",
    ),
    UvicornNames(
        "uvicorn.supervisors.multiprocess:Process",
        (
            *("config", "process", "pid", "exitcode", "server", "target"),
            *("parent_conn", "child_conn"),
            *("start", "ping", "terminate", "kill", "join"),
        ),
        ("_worker_process", "_workers"),
        "the supervisor starts, asks, ends and replaces the worker processes",
    ),
    UvicornNames(
        "uvicorn:Config",
        ("encoded_headers", "loaded_app", "load", "lifespan_class"),
        ("_server", "_overload"),
        "responses close their connection before the end, or answer 503 above the limit; and a"
        " startup can be cancelled",
    ),
)
