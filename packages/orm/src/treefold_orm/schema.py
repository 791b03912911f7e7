"""The schema of a database as data: what migrations and other tools on top of the ORM need.

Records describe tables in one dialect, `table_of` and `plan_tables` make them, `statements` writes
their SQL. Names are public here and keep their meaning; the modules behind them may move.
"""

from typing import TYPE_CHECKING

from treefold_orm._base.errors import ModelError, UnsupportedFeature
from treefold_orm._base.names import MAX_IDENTIFIER, constraint_name, quote
from treefold_orm._base.statement import ATOMIC, Operation, Statement
from treefold_orm._compile.dialect import Dialect
from treefold_orm._compile.postgres import Postgres
from treefold_orm._compile.sqlite import SQLite
from treefold_orm._expressions.constraints import (
    CheckConstraint,
    Constraint,
    ExclusionConstraint,
    Index,
    UniqueConstraint,
)
from treefold_orm._fields.base import MISSING, Field
from treefold_orm._fields.meta import Meta, registry
from treefold_orm._fields.relations import ForeignKey, ManyToManyField, is_foreign_key
from treefold_orm._runtime.connections import database_for
from treefold_orm._runtime.run import arun, run
from treefold_orm._schema.constants import default_sql, literal
from treefold_orm._schema.create import plan_tables
from treefold_orm._schema.ddl import column_clause, constraint_clause, indexes_of, statements
from treefold_orm._schema.describe import table_of
from treefold_orm._schema.records import (
    AddForeignKey,
    CheckDef,
    ColumnDef,
    CreateExtension,
    CreateIndex,
    CreateTable,
    DropTable,
    ExclusionDef,
    ForeignKeyDef,
    IndexDef,
    SchemaOperation,
    TableDef,
    UniqueDef,
)
from treefold_orm._schema.schema_search import CreateSearchIndex, DropSearchIndex, SearchDef
from treefold_orm._schema.source_expressions import SchemaPart, SourceWriter, source_of
from treefold_orm._schema.source_fields import same_declarations, unbound_copy
from treefold_orm._schema.source_values import Import, Imports, is_plain_name, namespace_of, quoted
from treefold_orm._schema.unregistered import TableShape, meta_of
from treefold_orm._search.search_index import SearchIndex

if TYPE_CHECKING:
    from treefold_orm._runtime.held import HeldConnection
    from treefold_orm._schema.detached_models import models_of

__all__ = [
    "ATOMIC",
    "MAX_IDENTIFIER",
    "MISSING",
    "AddForeignKey",
    "CheckConstraint",
    "CheckDef",
    "ColumnDef",
    "Constraint",
    "CreateExtension",
    "CreateIndex",
    "CreateSearchIndex",
    "CreateTable",
    "Dialect",
    "DropSearchIndex",
    "DropTable",
    "ExclusionConstraint",
    "ExclusionDef",
    "Field",
    "ForeignKey",
    "ForeignKeyDef",
    "HeldConnection",
    "Import",
    "Imports",
    "Index",
    "IndexDef",
    "ManyToManyField",
    "Meta",
    "ModelError",
    "Operation",
    "Postgres",
    "SQLite",
    "SchemaOperation",
    "SchemaPart",
    "SearchDef",
    "SearchIndex",
    "SourceWriter",
    "Statement",
    "TableDef",
    "TableShape",
    "UniqueConstraint",
    "UniqueDef",
    "UnsupportedFeature",
    "arun",
    "column_clause",
    "constraint_clause",
    "constraint_name",
    "database_for",
    "default_sql",
    "indexes_of",
    "is_foreign_key",
    "is_plain_name",
    "literal",
    "meta_of",
    "models_of",
    "namespace_of",
    "plan_tables",
    "quote",
    "quoted",
    "registry",
    "run",
    "same_declarations",
    "source_of",
    "statements",
    "table_of",
    "unbound_copy",
]

# what runs statements needs asyncio, which files and their comparison do not
_LATER = {"HeldConnection": "_runtime.held", "models_of": "_schema.detached_models"}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    found = getattr(importlib.import_module(f"treefold_orm.{_LATER[name]}"), name)
    globals()[name] = found
    return found
