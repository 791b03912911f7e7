"""treefold_orm: models and queries for SQLite and PostgreSQL, async and sync as equals."""

from typing import TYPE_CHECKING

from treefold_orm import fields
from treefold_orm.__about__ import __version__
from treefold_orm._base.errors import (
    CheckViolation,
    ConfigurationError,
    ConnectionFailed,
    DatabaseError,
    DatabaseLocked,
    DataError,
    DoesNotExist,
    ExclusionViolation,
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
    TransactionAborted,
    TransactionClosed,
    TransactionConflict,
    TransactionRequired,
    UniqueViolation,
    UnsupportedFeature,
    ValidationError,
)
from treefold_orm._expressions.columns import Column
from treefold_orm._expressions.conditions import Condition, Q, all_of, any_of, none_of
from treefold_orm._expressions.expressions import Expression, F, OrderBy, OuterRef, Value
from treefold_orm._fields.keys import CompositePrimaryKey
from treefold_orm._fields.meta import registry
from treefold_orm._fields.relations import CASCADE, RESTRICT, SET_DEFAULT, SET_NULL
from treefold_orm._models.model import Model
from treefold_orm._queries.managers import Manager
from treefold_orm._queries.prefetch import Prefetch
from treefold_orm._queries.querysets import BaseQuery, QuerySet
from treefold_orm._runtime.connections import aclose_all, aliases, close_all, configure
from treefold_orm._runtime.context import allow_blocking, read_only
from treefold_orm._runtime.observe import QueryEvent, Recorder, record_queries

if TYPE_CHECKING:
    from treefold_orm._compile.extending import Func, register_lookup
    from treefold_orm._expressions.aggregates import (
        Avg,
        BoolAnd,
        BoolOr,
        Count,
        Max,
        Min,
        Sum,
    )
    from treefold_orm._expressions.case import Case, When
    from treefold_orm._expressions.casting import Cast
    from treefold_orm._expressions.collecting import ArrayAgg, StringAgg
    from treefold_orm._expressions.constraints import (
        CheckConstraint,
        ExclusionConstraint,
        Index,
        RangeOperators,
        UniqueConstraint,
    )
    from treefold_orm._expressions.frames import GroupRange, RowRange, ValueRange
    from treefold_orm._expressions.functions_choice import Coalesce, Greatest, Least, NullIf
    from treefold_orm._expressions.functions_dates import Extract, Now, Trunc
    from treefold_orm._expressions.functions_json import JSONObject
    from treefold_orm._expressions.functions_numbers import (
        Abs,
        Ceil,
        Exp,
        Floor,
        Ln,
        Log,
        Power,
        Random,
        Round,
        Sign,
        Sqrt,
    )
    from treefold_orm._expressions.functions_text import (
        MD5,
        SHA256,
        Concat,
        Left,
        Length,
        Lower,
        LPad,
        LTrim,
        Position,
        Repeat,
        Replace,
        Right,
        RPad,
        RTrim,
        Substr,
        Trim,
        Upper,
    )
    from treefold_orm._expressions.ranges import Range
    from treefold_orm._expressions.schema_sql import SchemaSQL
    from treefold_orm._expressions.statistics import StdDev, Variance
    from treefold_orm._expressions.windows import (
        CumeDist,
        DenseRank,
        Exists,
        FirstValue,
        Lag,
        LastValue,
        Lead,
        NthValue,
        Ntile,
        PercentRank,
        Rank,
        RowNumber,
        Subquery,
        Window,
    )
    from treefold_orm._fields.choices import IntegerChoices, TextChoices
    from treefold_orm._models.related import ManyRelated, RelatedManager
    from treefold_orm._models.reverse import Reverse
    from treefold_orm._queries.cte import CTE
    from treefold_orm._queries.explaining import PlanStep
    from treefold_orm._queries.paging import Page
    from treefold_orm._queries.raw import araw, raw
    from treefold_orm._queries.untrusted import FilterSet, Tainted, filter_from, taint
    from treefold_orm._runtime.open_transaction import Transaction
    from treefold_orm._runtime.transactions import transaction
    from treefold_orm._schema.create import acreate_all, create_all
    from treefold_orm._search.search import SearchRank, SearchVector
    from treefold_orm._search.search_index import SearchIndex
    from treefold_orm._search.search_text import SearchQuery

__all__ = [
    "CASCADE",
    "CTE",
    "MD5",
    "RESTRICT",
    "SET_DEFAULT",
    "SET_NULL",
    "SHA256",
    "Abs",
    "ArrayAgg",
    "Avg",
    "BaseQuery",
    "BoolAnd",
    "BoolOr",
    "Case",
    "Cast",
    "Ceil",
    "CheckConstraint",
    "CheckViolation",
    "Coalesce",
    "Column",
    "CompositePrimaryKey",
    "Concat",
    "Condition",
    "ConfigurationError",
    "ConnectionFailed",
    "Count",
    "CumeDist",
    "DataError",
    "DatabaseError",
    "DatabaseLocked",
    "DenseRank",
    "DoesNotExist",
    "ExclusionConstraint",
    "ExclusionViolation",
    "Exists",
    "Exp",
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
    "GroupRange",
    "Index",
    "IntegerChoices",
    "IntegrityError",
    "InvalidParameter",
    "JSONObject",
    "LPad",
    "LTrim",
    "Lag",
    "LastValue",
    "Lead",
    "Least",
    "Left",
    "Length",
    "Ln",
    "Log",
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
    "NthValue",
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
    "Power",
    "Prefetch",
    "Q",
    "QueryEvent",
    "QuerySet",
    "RPad",
    "RTrim",
    "Random",
    "Range",
    "RangeOperators",
    "Rank",
    "ReadOnlyViolation",
    "Recorder",
    "RelatedManager",
    "Repeat",
    "Replace",
    "Reverse",
    "Right",
    "Round",
    "RowNumber",
    "RowRange",
    "SchemaSQL",
    "SearchIndex",
    "SearchQuery",
    "SearchRank",
    "SearchVector",
    "Sign",
    "Sqrt",
    "StaleObject",
    "StatementTimeout",
    "StdDev",
    "StringAgg",
    "Subquery",
    "Substr",
    "Sum",
    "SyncCallInAsync",
    "Tainted",
    "TaintedInput",
    "TextChoices",
    "TooManyRows",
    "Transaction",
    "TransactionAborted",
    "TransactionClosed",
    "TransactionConflict",
    "TransactionRequired",
    "Trim",
    "Trunc",
    "UniqueConstraint",
    "UniqueViolation",
    "UnsupportedFeature",
    "Upper",
    "ValidationError",
    "Value",
    "ValueRange",
    "Variance",
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
    "_expressions.aggregates": "Avg BoolAnd BoolOr Count Max Min Sum",
    "_expressions.collecting": "ArrayAgg StringAgg",
    "_expressions.statistics": "StdDev Variance",
    "_expressions.case": "Case When",
    "_expressions.constraints": "CheckConstraint ExclusionConstraint Index RangeOperators "
    "UniqueConstraint",
    "_queries.cte": "CTE",
    "_queries.explaining": "PlanStep",
    "_compile.extending": "Func register_lookup",
    "_fields.choices": "IntegerChoices TextChoices",
    "_expressions.ranges": "Range",
    "_expressions.schema_sql": "SchemaSQL",
    "_expressions.casting": "Cast",
    "_expressions.frames": "GroupRange RowRange ValueRange",
    "_expressions.functions_choice": "Coalesce Greatest Least NullIf",
    "_expressions.functions_dates": "Extract Now Trunc",
    "_expressions.functions_json": "JSONObject",
    "_expressions.functions_numbers": "Abs Ceil Exp Floor Ln Log Power Random Round Sign Sqrt",
    "_expressions.functions_text": "Concat Left Length Lower LPad LTrim MD5 Position Repeat "
    "Replace Right RPad RTrim SHA256 Substr Trim Upper",
    "_runtime.open_transaction": "Transaction",
    "_queries.paging": "Page",
    "_queries.raw": "araw raw",
    "_models.related": "ManyRelated RelatedManager",
    "_models.reverse": "Reverse",
    "_schema.create": "acreate_all create_all",
    "_search.search": "SearchRank SearchVector",
    "_search.search_index": "SearchIndex",
    "_search.search_text": "SearchQuery",
    "_runtime.transactions": "transaction",
    "_queries.untrusted": "FilterSet Tainted filter_from taint",
    "_expressions.windows": "CumeDist DenseRank Exists FirstValue Lag LastValue Lead "
    "NthValue Ntile PercentRank Rank RowNumber Subquery Window",
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
