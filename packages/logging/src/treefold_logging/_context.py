"""The id of the request that the current code serves.

A context variable, so tasks and threads started with the context of a request carry its id. Ids are
made and validated by the code that receives requests.
"""

from contextvars import ContextVar

OUTSIDE = "-"
"""The id outside any request."""

request_id: ContextVar[str] = ContextVar("treefold_request_id", default=OUTSIDE)
"""Set it when a request starts; every record of `get_logger()` then carries it."""
