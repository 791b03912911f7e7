"""In-process server: starts an application, calls it for each client, stops it.

It belongs to the event loop that started it, like every resource that the application keeps open.
This module holds the code that requests and WebSockets share.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import TypeAlias

from treefold_http._application import Application
from treefold_http._runtime.threads import WorkerThreads
from treefold_http._wire.aliases import AnyCallable
from treefold_http._wire.asgi import ASGIApp, Receive, Send
from treefold_http.testing._call import DISCONNECT_TIMEOUT, Call
from treefold_http.testing._contract.findings import ContractMode, choose_contract_mode
from treefold_http.testing._startup import Startup

Served: TypeAlias = "Application | ASGIApp | str | os.PathLike[str]"
Replacements: TypeAlias = Mapping[AnyCallable, AnyCallable]


class Server:
    """Server of one application within the process.

    Args:
        app: an application, or its folder (the one that holds `Api/`).
        overrides: replacements until the server stops.
        raise_app_errors: raise unhandled exceptions of the application in the test.
        contract: what becomes of answers that a contract does not declare; None as in pytest.

    Attributes:
        contract: the same, `off` for an application without a contract.

    Raises:
        TypeError: for overrides or a contract of an object that is not an `Application`.
        TreefoldError: for an unknown word as `contract`.
    """

    def __init__(
        self,
        app: Served,
        *,
        overrides: Replacements | None,
        raise_app_errors: bool,
        contract: ContractMode | None = None,
    ) -> None:
        self.app = app if callable(app) else Application(app)
        self.contract: ContractMode = choose_contract_mode(contract)
        if isinstance(self.app, Application):
            self.app.use_test_names()
        elif contract not in (None, "off"):
            raise TypeError(f"A contract needs a treefold Application, got {app!r}")
        else:
            self.contract = "off"
        self.raise_app_errors = raise_app_errors
        self.threads = WorkerThreads()
        self._overrides = dict(overrides or {})
        self._overridden: dict[AnyCallable, AnyCallable] = {}
        if self._overrides and not isinstance(self.app, Application):
            raise TypeError(f"Overrides need a treefold Application, got {app!r}")
        self._startup = Startup()
        self._starting = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = False
        self._calls: dict[asyncio.Task[None], Call] = {}

    async def start_application(self) -> None:
        """Start the application unless it is running.

        Raises:
            BaseException: the error of the startup, such as a `BootError`.
            RuntimeError: on another loop than before, or after the end.
        """
        async with self._starting:
            loop = asyncio.get_running_loop()
            if self._stopped:
                raise RuntimeError("The client is closed; create another one")
            if self._loop is None:
                self._loop = loop
                try:
                    self._apply_overrides()
                    await self._startup.start_application(self.app)
                except BaseException:
                    self._shutdown_and_restore_overrides()
                    raise
            elif self._loop is not loop:
                message = "This client belongs to another event loop; create one in each loop"
                raise RuntimeError(message)

    async def stop_application(self) -> None:
        """Disconnect every open request and WebSocket, then stop the application; once."""
        if self._stopped or self._loop is None:
            self._stopped = True
            return
        for call in self._calls.values():
            call.disconnect_client()
        if self._calls:
            _, late = await asyncio.wait(list(self._calls), timeout=DISCONNECT_TIMEOUT)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=DISCONNECT_TIMEOUT)
        try:
            await self._startup.stop_application()
        finally:
            self._shutdown_and_restore_overrides()

    def start_call(self, call: Call, receive: Receive, send: Send) -> None:
        """Start a call of the application with one scope."""
        # a shallow copy for each connection (ASGI, lifespan state)
        call.scope["state"] = self._startup.state.copy()
        task = call.start_task(self.app, receive, send)
        self._calls[task] = call
        task.add_done_callback(self._calls.pop)

    def _apply_overrides(self) -> None:
        if self._overrides and isinstance(self.app, Application):
            self._overridden = dict(self.app.overrides)
            self.app.overrides.update(self._overrides)

    def _shutdown_and_restore_overrides(self) -> None:
        self._stopped = True
        self.threads.shutdown()
        if self._overrides and isinstance(self.app, Application):
            for replaced in self._overrides:
                if replaced in self._overridden:
                    self.app.overrides[replaced] = self._overridden[replaced]
                else:
                    self.app.overrides.pop(replaced, None)
