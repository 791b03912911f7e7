"""The response to an exception: an exception handler, the error format, or the problem document.

Requests and sockets use it alike. A format or a handler that fails costs its own document only: the
client gets the problem document, which shows nothing of the failure.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from treefold_http._extensions.calls import explain
from treefold_http._failures.error_format import ErrorFormat
from treefold_http._failures.exception_handlers import ExceptionHandlers
from treefold_http._failures.not_found_page import render_not_found_page
from treefold_http._failures.problems import (
    describe_crash,
    encode_html_safe_json,
    render_crash_problem,
    render_disconnect_response,
    render_problem,
)
from treefold_http._responses.coercion import to_unshared_response
from treefold_http._responses.response import Response, make_unchecked_response
from treefold_http._runtime.exit_callbacks import is_outer_cancellation
from treefold_http._wire.errors import ClientDisconnect, HTTPError
from treefold_logging import get_logger

if TYPE_CHECKING:
    from treefold_http._requests.connection import Connection
    from treefold_http._runtime.runtime import Runtime


class ErrorResponses:
    """The exception handlers and the error format of one application.

    Attributes:
        handlers: exception handlers by type.
        declared: the error format of `app.error_format`.
        loaded: the error format of `hooks.py`.
    """

    def __init__(self) -> None:
        self.handlers = ExceptionHandlers()
        self.declared: ErrorFormat | None = None
        self.loaded: ErrorFormat | None = None

    @property
    def error_format(self) -> ErrorFormat | None:
        """The error format, that of `app.error_format` first; None for the problem document."""
        return self.declared or self.loaded

    async def respond_to_error(
        self, app: Runtime, error: BaseException, connection: Connection
    ) -> Response:
        """Return the response for an exception of a connection.

        A cancellation of its task is re-raised. Every other exception is answered, also
        `SystemExit` and `KeyboardInterrupt`: a request must not end the process (R-21).
        """
        try:
            if (handler := self.handlers.find_handler_runner(error)) is not None:
                made = await handler(app, connection, error)
                if isinstance(made, HTTPError):
                    return await self._render_http_error(made, connection)
                return to_unshared_response(made)
            if isinstance(error, HTTPError):
                return await self._render_http_error(error, connection)
            if isinstance(error, ClientDisconnect):
                return render_disconnect_response(connection)
        except BaseException as unfit:  # its headers cannot be sent, or its handler failed
            if is_outer_cancellation(unfit, connection.id):
                raise
            error = unfit
        connection.error = error
        await explain(app, error)
        hidden = HTTPError(500, describe_crash(error, connection))
        rendered = await self._render_in_format(hidden, connection)
        return rendered or render_crash_problem(error, connection)

    async def _render_http_error(self, error: HTTPError, connection: Connection) -> Response:
        if connection.app.dev and (page := render_not_found_page(error, connection)) is not None:
            return page
        rendered = await self._render_in_format(error, connection)
        return rendered or render_problem(error, connection)

    async def _render_in_format(self, error: HTTPError, connection: Connection) -> Response | None:
        """Render an error in the format; None without one, and with one log line if that fails."""
        if (form := self.error_format) is None:
            return None
        try:
            made = form.render(connection, error)
            if inspect.isawaitable(made):
                made = await made
            body = encode_html_safe_json(form.serialize_error(made))
        except BaseException as failure:
            if is_outer_cancellation(failure, connection.id):
                raise
            text = "error_format failed for status %d: the problem document was sent"
            get_logger().error(text, error.status, exc_info=failure)
            return None
        response = make_unchecked_response(body, form.content_type, error.status)
        response.headers.update(error.headers)
        return response
