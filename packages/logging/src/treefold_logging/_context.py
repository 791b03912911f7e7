"""The id of the request that the current code works for.

A context variable, so tasks and threads started with the context of a request carry its id. This
module neither makes ids nor judges them: that belongs to whoever receives requests.
"""

from contextvars import ContextVar

OUTSIDE = "-"
"""The id where no request is being served."""

request_id: ContextVar[str] = ContextVar("treefold_request_id", default=OUTSIDE)
"""Set it when a request starts; every record of `get_logger()` then carries it."""
