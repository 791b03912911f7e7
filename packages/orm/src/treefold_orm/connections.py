"""The connections of the ORM, for packages that send SQL of their own or build on transactions.

Names are public here and keep their meaning; the modules behind them may move. Queries of an
application use models, `raw` and `araw` instead.
"""

from treefold_orm._runtime.connections import is_diverted as is_diverted
from treefold_orm._runtime.driver_sql import (
    afetch_rows as afetch_rows,
    backend_of as backend_of,
    connect_arguments_of as connect_arguments_of,
    fetch_rows as fetch_rows,
)
from treefold_orm._runtime.run import require_blocking_allowed as require_blocking_allowed

__all__ = [
    "afetch_rows",
    "backend_of",
    "connect_arguments_of",
    "fetch_rows",
    "is_diverted",
    "require_blocking_allowed",
]
