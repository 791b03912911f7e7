"""All functions of the database: `from treefold_orm.functions import Lower`.

They are also in `treefold_orm`, from which applied migrations import them.
"""

from treefold_orm._functions.aggregates import (
    Avg as Avg,
    BoolAnd as BoolAnd,
    BoolOr as BoolOr,
    Count as Count,
    Max as Max,
    Min as Min,
    StdDev as StdDev,
    Sum as Sum,
    Variance as Variance,
)
from treefold_orm._functions.casting import Cast as Cast
from treefold_orm._functions.choice import (
    Case as Case,
    Coalesce as Coalesce,
    Greatest as Greatest,
    Least as Least,
    NullIf as NullIf,
    When as When,
)
from treefold_orm._functions.collecting import ArrayAgg as ArrayAgg, StringAgg as StringAgg
from treefold_orm._functions.custom_sql import Func as Func, register_lookup as register_lookup
from treefold_orm._functions.dates import Extract as Extract, Now as Now, Trunc as Trunc
from treefold_orm._functions.json import JSONObject as JSONObject
from treefold_orm._functions.numbers import (
    Abs as Abs,
    Ceil as Ceil,
    Exp as Exp,
    Floor as Floor,
    Ln as Ln,
    Log as Log,
    Power as Power,
    Random as Random,
    Round as Round,
    Sign as Sign,
    Sqrt as Sqrt,
)
from treefold_orm._functions.ranges import Range as Range
from treefold_orm._functions.schema_sql import SchemaSQL as SchemaSQL
from treefold_orm._functions.search import SearchRank as SearchRank, SearchVector as SearchVector
from treefold_orm._functions.text import (
    MD5 as MD5,
    SHA256 as SHA256,
    Concat as Concat,
    Left as Left,
    Length as Length,
    Lower as Lower,
    LPad as LPad,
    LTrim as LTrim,
    Position as Position,
    Repeat as Repeat,
    Replace as Replace,
    Right as Right,
    RPad as RPad,
    RTrim as RTrim,
    Substr as Substr,
    Trim as Trim,
    Upper as Upper,
)
from treefold_orm._functions.windows import (
    CumeDist as CumeDist,
    DenseRank as DenseRank,
    Exists as Exists,
    FirstValue as FirstValue,
    GroupRange as GroupRange,
    Lag as Lag,
    LastValue as LastValue,
    Lead as Lead,
    NthValue as NthValue,
    Ntile as Ntile,
    PercentRank as PercentRank,
    Rank as Rank,
    RowNumber as RowNumber,
    RowRange as RowRange,
    Subquery as Subquery,
    ValueRange as ValueRange,
    Window as Window,
)
