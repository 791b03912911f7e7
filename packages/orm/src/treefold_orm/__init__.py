"""treefold_orm: models and queries for SQLite and PostgreSQL, async and sync as equals."""

from typing import TYPE_CHECKING

from treefold_orm import fields
from treefold_orm.__about__ import __version__
from treefold_orm._conditions import Condition, Q, all_of, any_of, none_of
from treefold_orm._connections import aclose_all, aliases, close_all, configure
from treefold_orm._context import allow_blocking, read_only
from treefold_orm._errors import (
    CheckViolation,
    ConfigurationError,
    ConnectionFailed,
    DatabaseError,
    DatabaseLocked,
    DoesNotExist,
    FieldError,
    FieldValueError,
    ForeignKeyViolation,
    IntegrityError,
    InvalidParameter,
    ModelError,
    MultipleObjectsReturned,
    NotLoaded,
    NotNullViolation,
    OperationalError,
    ORMError,
    PoolTimeout,
    ReadOnlyViolation,
    StaleObject,
    StatementTimeout,
    SyncCallInAsync,
    TaintedInput,
    TooManyRows,
    TransactionClosed,
    TransactionConflict,
    UniqueViolation,
    UnsupportedFeature,
)
from treefold_orm._expressions import Column, Expression, F, OrderBy, OuterRef, Value
from treefold_orm._managers import Manager
from treefold_orm._meta import registry
from treefold_orm._model import Model
from treefold_orm._observe import QueryEvent, Recorder, record_queries
from treefold_orm._prefetch import Prefetch
from treefold_orm._querysets import BaseQuery, QuerySet

if TYPE_CHECKING:
    from treefold_orm._aggregates import Avg, Count, Max, Min, Sum
    from treefold_orm._case import Case, When
    from treefold_orm._constraints import CheckConstraint, Index, UniqueConstraint
    from treefold_orm._cte import CTE
    from treefold_orm._explaining import PlanStep
    from treefold_orm._extending import Func, register_lookup
    from treefold_orm._functions import (
        Abs,
        Cast,
        Ceil,
        Coalesce,
        Concat,
        Extract,
        Floor,
        Greatest,
        Least,
        Length,
        Lower,
        LTrim,
        Now,
        NullIf,
        Position,
        Replace,
        Round,
        RTrim,
        Substr,
        Trim,
        Trunc,
        Upper,
    )
    from treefold_orm._open_transaction import Transaction
    from treefold_orm._paging import Page
    from treefold_orm._raw import araw, raw
    from treefold_orm._related import ManyRelated, RelatedManager, Reverse
    from treefold_orm._schema import acreate_all, create_all
    from treefold_orm._search import SearchRank, SearchVector
    from treefold_orm._search_index import SearchIndex
    from treefold_orm._search_text import SearchQuery
    from treefold_orm._transactions import transaction
    from treefold_orm._untrusted import FilterSet, Tainted, filter_from, taint
    from treefold_orm._windows import (
        CumeDist,
        DenseRank,
        Exists,
        FirstValue,
        Lag,
        LastValue,
        Lead,
        Ntile,
        PercentRank,
        Rank,
        RowNumber,
        Subquery,
        Window,
    )

__all__ = [
    "CTE",
    "Abs",
    "Avg",
    "BaseQuery",
    "Case",
    "Cast",
    "Ceil",
    "CheckConstraint",
    "CheckViolation",
    "Coalesce",
    "Column",
    "Concat",
    "Condition",
    "ConfigurationError",
    "ConnectionFailed",
    "Count",
    "CumeDist",
    "DatabaseError",
    "DatabaseLocked",
    "DenseRank",
    "DoesNotExist",
    "Exists",
    "Expression",
    "Extract",
    "F",
    "FieldError",
    "FieldValueError",
    "FilterSet",
    "FirstValue",
    "Floor",
    "ForeignKeyViolation",
    "Func",
    "Greatest",
    "Index",
    "IntegrityError",
    "InvalidParameter",
    "LTrim",
    "Lag",
    "LastValue",
    "Lead",
    "Least",
    "Length",
    "Lower",
    "Manager",
    "ManyRelated",
    "Max",
    "Min",
    "Model",
    "ModelError",
    "MultipleObjectsReturned",
    "NotLoaded",
    "NotNullViolation",
    "Now",
    "Ntile",
    "NullIf",
    "ORMError",
    "OperationalError",
    "OrderBy",
    "OuterRef",
    "Page",
    "PercentRank",
    "PlanStep",
    "PoolTimeout",
    "Position",
    "Prefetch",
    "Q",
    "QueryEvent",
    "QuerySet",
    "RTrim",
    "Rank",
    "ReadOnlyViolation",
    "Recorder",
    "RelatedManager",
    "Replace",
    "Reverse",
    "Round",
    "RowNumber",
    "SearchIndex",
    "SearchQuery",
    "SearchRank",
    "SearchVector",
    "StaleObject",
    "StatementTimeout",
    "Subquery",
    "Substr",
    "Sum",
    "SyncCallInAsync",
    "Tainted",
    "TaintedInput",
    "TooManyRows",
    "Transaction",
    "TransactionClosed",
    "TransactionConflict",
    "Trim",
    "Trunc",
    "UniqueConstraint",
    "UniqueViolation",
    "UnsupportedFeature",
    "Upper",
    "Value",
    "When",
    "Window",
    "__version__",
    "aclose_all",
    "acreate_all",
    "aliases",
    "all_of",
    "allow_blocking",
    "any_of",
    "araw",
    "close_all",
    "configure",
    "create_all",
    "fields",
    "filter_from",
    "none_of",
    "raw",
    "read_only",
    "record_queries",
    "register_lookup",
    "registry",
    "taint",
    "transaction",
]

# what an application asks for later, or never, is imported when it does
_MODULES = {
    "_aggregates": "Avg Count Max Min Sum",
    "_case": "Case When",
    "_constraints": "CheckConstraint Index UniqueConstraint",
    "_cte": "CTE",
    "_explaining": "PlanStep",
    "_extending": "Func register_lookup",
    "_functions": "Abs Cast Ceil Coalesce Concat Extract Floor Greatest Least Length Lower LTrim "
    "Now NullIf Position Replace Round RTrim Substr Trim Trunc Upper",
    "_open_transaction": "Transaction",
    "_paging": "Page",
    "_raw": "araw raw",
    "_related": "ManyRelated RelatedManager Reverse",
    "_schema": "acreate_all create_all",
    "_search": "SearchRank SearchVector",
    "_search_index": "SearchIndex",
    "_search_text": "SearchQuery",
    "_transactions": "transaction",
    "_untrusted": "FilterSet Tainted filter_from taint",
    "_windows": "CumeDist DenseRank Exists FirstValue Lag LastValue Lead Ntile PercentRank Rank "
    "RowNumber Subquery Window",
}
_LATER = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    found = getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
