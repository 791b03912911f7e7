"""The request log of treefold: one masked line per request, and the logger it is written with.

Only names are exported here; the code is in the underscored modules. The package requires nothing
but the standard library and knows nothing of HTTP objects: it is given values and writes lines.
"""

from typing import TYPE_CHECKING

from treefold_logging.__about__ import __version__
from treefold_logging._context import request_id as request_id
from treefold_logging._logger import (
    configure as configure,
    flush as flush,
    get_logger as get_logger,
)
from treefold_logging._mask import mask as mask
from treefold_logging._payload import (
    compact_payload as compact_payload,
    form_payload as form_payload,
    json_payload as json_payload,
    opaque_payload as opaque_payload,
)
from treefold_logging._request_line import (
    log_request as log_request,
    log_sent_request as log_sent_request,
)
from treefold_logging._scrub import scrub as scrub
from treefold_logging._summary import log_summary as log_summary, shows_summaries as shows_summaries
from treefold_logging._tail import Tail as Tail, keep_tail as keep_tail
from treefold_logging._target import request_target as request_target
from treefold_logging._words import is_sensitive as is_sensitive

if not TYPE_CHECKING:  # checkers read the imports above, and cannot evaluate this
    _NAMES = {name for name in dir() if name[0].isalpha()} - {"TYPE_CHECKING"}
    __all__ = ["__version__", *sorted(_NAMES)]
