"""The schema of a database as data: the interface for migrations and other tools on the ORM.

Records describe tables in one dialect, `table_of` and `plan_tables` make them, `statements` writes
their SQL. Names are public here and keep their meaning; the modules behind them may move.
"""

from typing import TYPE_CHECKING

from treefold_orm._base.databases import DEFAULT as DEFAULT
from treefold_orm._base.errors import (
    ModelError as ModelError,
    UnsupportedFeature as UnsupportedFeature,
)
from treefold_orm._base.names import (
    MAX_IDENTIFIER as MAX_IDENTIFIER,
    constraint_name as constraint_name,
    quote as quote,
)
from treefold_orm._base.statement import (
    ATOMIC as ATOMIC,
    Operation as Operation,
    Statement as Statement,
)
from treefold_orm._dialects.dialect import Dialect as Dialect
from treefold_orm._dialects.postgres import Postgres as Postgres
from treefold_orm._dialects.sqlite import SQLite as SQLite
from treefold_orm._fields.base import MISSING as MISSING, Field as Field
from treefold_orm._fields.meta import Meta as Meta, registry as registry
from treefold_orm._fields.relations import (
    ForeignKey as ForeignKey,
    is_foreign_key as is_foreign_key,
)
from treefold_orm._models.many_to_many import ManyToManyField as ManyToManyField
from treefold_orm._runtime.connections import database_for as database_for
from treefold_orm._runtime.run import arun as arun, run as run
from treefold_orm._schema.constants import (
    default_sql as default_sql,
    fill_sql as fill_sql,
    literal as literal,
    reads_columns as reads_columns,
)
from treefold_orm._schema.create import plan_tables as plan_tables
from treefold_orm._schema.ddl import (
    column_clause as column_clause,
    constraint_clause as constraint_clause,
    indexes_of as indexes_of,
    statements as statements,
)
from treefold_orm._schema.describe import table_of as table_of
from treefold_orm._schema.homes import (
    check_relations as check_relations,
    sort_databases as sort_databases,
)
from treefold_orm._schema.records import (
    AddForeignKey as AddForeignKey,
    CheckDef as CheckDef,
    ColumnDef as ColumnDef,
    CreateExtension as CreateExtension,
    CreateIndex as CreateIndex,
    CreateTable as CreateTable,
    DropTable as DropTable,
    ExclusionDef as ExclusionDef,
    ForeignKeyDef as ForeignKeyDef,
    IndexDef as IndexDef,
    SchemaOperation as SchemaOperation,
    TableDef as TableDef,
    UniqueDef as UniqueDef,
)
from treefold_orm._schema.schema_search import (
    CreateSearchIndex as CreateSearchIndex,
    DropSearchIndex as DropSearchIndex,
    SearchDef as SearchDef,
)
from treefold_orm._schema.source_expressions import (
    SchemaPart as SchemaPart,
    SourceWriter as SourceWriter,
    source_of as source_of,
)
from treefold_orm._schema.source_fields import (
    same_declarations as same_declarations,
    unbound_copy as unbound_copy,
)
from treefold_orm._schema.source_values import (
    Import as Import,
    Imports as Imports,
    is_plain_name as is_plain_name,
    namespace_of as namespace_of,
    quoted as quoted,
)
from treefold_orm._schema.unregistered import TableShape as TableShape, meta_of as meta_of
from treefold_orm._terms.constraints import (
    CheckConstraint as CheckConstraint,
    Constraint as Constraint,
    ExclusionConstraint as ExclusionConstraint,
    Index as Index,
    UniqueConstraint as UniqueConstraint,
)
from treefold_orm._terms.search_index import SearchIndex as SearchIndex

if TYPE_CHECKING:
    from treefold_orm._runtime.held import HeldConnection as HeldConnection
    from treefold_orm._runtime.memory import run_in_memory as run_in_memory
    from treefold_orm._schema.detached_models import models_of as models_of

# what runs statements needs asyncio, which files and their comparison do not
_LATER = {
    "HeldConnection": "_runtime.held",
    "models_of": "_schema.detached_models",
    "run_in_memory": "_runtime.memory",
}
_AT_ONCE = {name for name in globals() if not name.startswith("_")} - {"TYPE_CHECKING"}

if not TYPE_CHECKING:  # checkers read the imports above, and cannot evaluate this
    __all__ = sorted({*_AT_ONCE, *_LATER})


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    found = getattr(importlib.import_module(f"treefold_orm.{_LATER[name]}"), name)
    globals()[name] = found
    return found
