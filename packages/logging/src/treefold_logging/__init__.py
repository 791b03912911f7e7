"""The request log of treefold: one masked line per request, and the logger it is written with.

Only names are exported here; the code is in the underscored modules. The package requires nothing
but the standard library and knows nothing of HTTP objects: it is given values and writes lines.
"""

from treefold_logging.__about__ import __version__
from treefold_logging._context import request_id
from treefold_logging._logger import configure, flush, get_logger
from treefold_logging._mask import mask
from treefold_logging._payload import (
    compact_payload,
    form_payload,
    json_payload,
    opaque_payload,
)
from treefold_logging._request_line import log_request
from treefold_logging._scrub import scrub
from treefold_logging._summary import log_summary, shows_summaries
from treefold_logging._tail import Tail, keep_tail
from treefold_logging._target import request_target
from treefold_logging._words import is_sensitive

__all__ = [
    "Tail",
    "__version__",
    "compact_payload",
    "configure",
    "flush",
    "form_payload",
    "get_logger",
    "is_sensitive",
    "json_payload",
    "keep_tail",
    "log_request",
    "log_summary",
    "mask",
    "opaque_payload",
    "request_id",
    "request_target",
    "scrub",
    "shows_summaries",
]
