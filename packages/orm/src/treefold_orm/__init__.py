"""treefold_orm: models and queries for SQLite and PostgreSQL, async and sync as equals."""

from typing import TYPE_CHECKING

from treefold_orm import fields as fields
from treefold_orm.__about__ import __version__ as __version__
from treefold_orm._base.errors import (
    CheckViolation as CheckViolation,
    ConfigurationError as ConfigurationError,
    ConnectionFailed as ConnectionFailed,
    DatabaseError as DatabaseError,
    DatabaseLocked as DatabaseLocked,
    DataError as DataError,
    DoesNotExist as DoesNotExist,
    ExclusionViolation as ExclusionViolation,
    FieldError as FieldError,
    FieldValueError as FieldValueError,
    ForeignKeyViolation as ForeignKeyViolation,
    IntegrityError as IntegrityError,
    InvalidParameter as InvalidParameter,
    ModelError as ModelError,
    MultipleObjectsReturned as MultipleObjectsReturned,
    NotLoaded as NotLoaded,
    NotNullViolation as NotNullViolation,
    OperationalError as OperationalError,
    ORMError as ORMError,
    PoolTimeout as PoolTimeout,
    ProtectedError as ProtectedError,
    ReadOnlyViolation as ReadOnlyViolation,
    StaleObject as StaleObject,
    StatementTimeout as StatementTimeout,
    SyncCallInAsync as SyncCallInAsync,
    TaintedInput as TaintedInput,
    TooManyRows as TooManyRows,
    TransactionAborted as TransactionAborted,
    TransactionClosed as TransactionClosed,
    TransactionConflict as TransactionConflict,
    TransactionRequired as TransactionRequired,
    UniqueViolation as UniqueViolation,
    UnsupportedFeature as UnsupportedFeature,
    ValidationError as ValidationError,
)
from treefold_orm._building.sources import Prefetch as Prefetch
from treefold_orm._fields.keys import CompositePrimaryKey as CompositePrimaryKey
from treefold_orm._fields.meta import registry as registry
from treefold_orm._fields.relations import (
    CASCADE as CASCADE,
    PROTECT as PROTECT,
    RESTRICT as RESTRICT,
    SET_DEFAULT as SET_DEFAULT,
    SET_NULL as SET_NULL,
)
from treefold_orm._models.model import Model as Model
from treefold_orm._queries.base_query import BaseQuery as BaseQuery
from treefold_orm._queries.managers import Manager as Manager, QuerySet as QuerySet
from treefold_orm._runtime.connections import (
    aclose_all as aclose_all,
    aliases as aliases,
    close_all as close_all,
    configure as configure,
)
from treefold_orm._runtime.context import allow_blocking as allow_blocking, read_only as read_only
from treefold_orm._runtime.observe import record_queries as record_queries
from treefold_orm._runtime.recorder import QueryEvent as QueryEvent, Recorder as Recorder
from treefold_orm._terms.columns import Column as Column
from treefold_orm._terms.operators import (
    Condition as Condition,
    Expression as Expression,
    OrderBy as OrderBy,
    Q as Q,
)
from treefold_orm._terms.values import (
    F as F,
    OuterRef as OuterRef,
    Value as Value,
    all_of as all_of,
    any_of as any_of,
    none_of as none_of,
)

if TYPE_CHECKING:
    from treefold_orm._fields.choices import (
        IntegerChoices as IntegerChoices,
        TextChoices as TextChoices,
    )
    from treefold_orm._lists.filter_set import FilterSet as FilterSet, filter_from as filter_from
    from treefold_orm._models.related import (
        ManyRelated as ManyRelated,
        RelatedManager as RelatedManager,
    )
    from treefold_orm._models.reverse import Reverse as Reverse
    from treefold_orm._operations.explaining import PlanStep as PlanStep
    from treefold_orm._operations.paging import Page as Page
    from treefold_orm._operations.prefetching import (
        aprefetch_related_objects as aprefetch_related_objects,
        prefetch_related_objects as prefetch_related_objects,
    )
    from treefold_orm._operations.raw import araw as araw, raw as raw
    from treefold_orm._queries.cte import CTE as CTE
    from treefold_orm._queries.untrusted import Tainted as Tainted, taint as taint
    from treefold_orm._runtime.open_transaction import Transaction as Transaction
    from treefold_orm._runtime.transactions import transaction as transaction
    from treefold_orm._schema.create import acreate_all as acreate_all, create_all as create_all
    from treefold_orm._search.search_text import SearchQuery as SearchQuery
    from treefold_orm._shapes.shape import Shape as Shape
    from treefold_orm._terms.constraints import (
        CheckConstraint as CheckConstraint,
        ExclusionConstraint as ExclusionConstraint,
        Index as Index,
        RangeOperators as RangeOperators,
        UniqueConstraint as UniqueConstraint,
    )
    from treefold_orm._terms.search_index import SearchIndex as SearchIndex
    from treefold_orm.functions import *  # noqa: F403 - its imports are its names

# what an application asks for later, or never, is imported when it does
_MODULES = {
    "_fields.choices": "IntegerChoices TextChoices",
    "_functions.aggregates": "Avg BoolAnd BoolOr Count Max Min StdDev Sum Variance",
    "_functions.casting": "Cast",
    "_functions.choice": "Case Coalesce Greatest Least NullIf When",
    "_functions.collecting": "ArrayAgg StringAgg",
    "_functions.custom_sql": "Func register_lookup",
    "_functions.dates": "Extract Now Trunc",
    "_functions.json": "JSONObject",
    "_functions.numbers": "Abs Ceil Exp Floor Ln Log Power Random Round Sign Sqrt",
    "_functions.ranges": "Range",
    "_functions.schema_sql": "SchemaSQL",
    "_functions.search": "SearchRank SearchVector",
    "_functions.text": "MD5 SHA256 Concat Left Length Lower LPad LTrim Position Repeat Replace "
    "Right RPad RTrim Substr Trim Upper",
    "_functions.windows": "CumeDist DenseRank Exists FirstValue GroupRange Lag LastValue Lead "
    "NthValue Ntile PercentRank Rank RowNumber RowRange Subquery ValueRange Window",
    "_lists.filter_set": "FilterSet filter_from",
    "_models.related": "ManyRelated RelatedManager",
    "_models.reverse": "Reverse",
    "_operations.explaining": "PlanStep",
    "_operations.paging": "Page",
    "_operations.prefetching": "aprefetch_related_objects prefetch_related_objects",
    "_operations.raw": "araw raw",
    "_queries.cte": "CTE",
    "_queries.untrusted": "Tainted taint",
    "_runtime.open_transaction": "Transaction",
    "_runtime.transactions": "transaction",
    "_schema.create": "acreate_all create_all",
    "_search.search_text": "SearchQuery",
    "_shapes.shape": "Shape",
    "_terms.constraints": "CheckConstraint ExclusionConstraint Index RangeOperators "
    "UniqueConstraint",
    "_terms.search_index": "SearchIndex",
}
_LATER = {name: module for module, names in _MODULES.items() for name in names.split()}
_AT_ONCE = {name for name in globals() if name[0].isalpha()} - {"TYPE_CHECKING"}

if not TYPE_CHECKING:  # checkers read the imports above, and cannot evaluate this
    __all__ = sorted({"__version__", *_AT_ONCE, *_LATER})


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    found = getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
