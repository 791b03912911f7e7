"""The description of a model: its fields, relations and names, as data.

`Meta` describes one model, `Relation` one step from a model to another. No SQL, no I/O.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from treefold_orm._base import errors
from treefold_orm._base.databases import DEFAULT, Home
from treefold_orm._base.errors import FieldError, ModelError
from treefold_orm._base.journal import Journal
from treefold_orm._base.names import quote
from treefold_orm._base.records import Record, frozen_record
from treefold_orm._fields.base import AnyField, Fields
from treefold_orm._fields.keys import KeyAccess, KeyColumns
from treefold_orm._fields.registry import Registry as Registry, registry as registry

if TYPE_CHECKING:
    from treefold_orm._fields.batch import LazyBatch
    from treefold_orm._terms.constraints import Constraint, Index
    from treefold_orm._terms.search_index import SearchIndex


@frozen_record
class Relation(Record):
    """One step from `source` to `target`, joined where `source_field` equals `target_field`.

    For `many`, the rows of `through` connect the keys of both sides: `source_field` and
    `target_field` are then the two foreign keys of the through model.

    | `kind` | Example | `source_field` | `target_field` |
    |---|---|---|---|
    | forward | `Article.writer` | `Article.writer_id` | `Writer.id` |
    | reverse | `Writer.articles` | `Writer.id` | `Article.writer_id` |
    | many | `Article.labels` | `article_id` of the through model | its `label_id` |
    """

    name: str
    source: Meta
    target: Meta
    kind: Literal["forward", "reverse", "many"]
    source_field: AnyField
    target_field: AnyField
    to_many: bool = False
    nullable: bool = True
    through: Meta | None = None

    # by identity: the relations of a reloaded model are others, and each query hashes some
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def require_one_database(self) -> None:
        """Raise `ModelError` where the models live on two databases, which no statement reaches."""
        source, target = self.source, self.target
        if source.database != target.database:
            raise ModelError(
                f"{source.name}.{self.name} cannot lead to {target.name}: {source.name} is of the "
                f"database {str(source.database)!r}, and {target.name} of "
                f"{str(target.database)!r}; keep the key in a plain field, or give both models the "
                "same Meta.database"
            )


class Instance:
    """What the files that `Model` is built on know of an instance; `Model` is the one class below.

    They cannot import `Model`, which imports them.

    Attributes:
        _row: the row that it was read from or written to, None before.
        _shape: the columns of that row, where it has not all.
        _alias: the database that it was read from or written to.
        _batch: the result that it was read with, whose rows load what is missing together.
        _read_in: the transaction that it was read in, if that had written before.
        _raises_lazy: True where reading an attribute never sends a statement.
    """

    _meta: ClassVar[Meta]
    _registry: ClassVar[Registry] = registry
    _row: Any = None
    _shape: Fields | None = None
    _batch: LazyBatch | None = None
    _alias: str = DEFAULT
    _read_in: Journal | None = None
    _raises_lazy: bool = False
    if TYPE_CHECKING:
        pk = KeyAccess()
        DoesNotExist: ClassVar[type[errors.DoesNotExist]]
        MultipleObjectsReturned: ClassVar[type[errors.MultipleObjectsReturned]]

        def __init__(self, **values: Any) -> None: ...
        def clean(self) -> None: ...
        def _load_missing_field(self, field: AnyField) -> Any: ...
        @classmethod
        def _add_relation_accessor(cls, relation: Relation) -> None: ...
        @classmethod
        def _remove_relation_accessor(cls, relation: Relation) -> None: ...
        @classmethod
        def _has_non_field_attribute(cls, name: str) -> bool: ...


class Meta:
    """Everything known about one model.

    The attributes have these values for

        class Article(Model):
            title = fields.CharField(max_length=100)
            views = fields.IntegerField(default=0)
            writer = fields.ForeignKey(Writer, related_name="articles")
            labels = fields.ManyToManyField(Label, related_name="articles")

            class Meta:
                indexes = (SearchIndex(fields=["title"]),)

    From the class statement:

    | Attribute | `Article` | |
    |---|---|---|
    | `model` | `Article` | the class |
    | `registry` | `Registry` | where models find the targets of their relations by name |
    | `space` | `'examples'` | the project whose models it meets; empty for a library's |
    | `name` | `'Article'` | the name of the class |
    | `abstract` | `False` | True for a base of models, which has no table |
    | `table_name` | `'article'` | the table |
    | `table` | `'"article"'` | the table, quoted |

    From its `class Meta`, before the fields:

    | Attribute | `Article` | |
    |---|---|---|
    | `database` | `'default'` | the alias that the model lives on |
    | `ordering` | `()` | names that all queries are ordered by |
    | `latest_by` | `()` | names that `latest()` orders by |
    | `constraints` | `()` | unique and check constraints |
    | `indexes` | `(SearchIndex(...),)` | indexes, those for full text search among them |
    | `managed` | `True` | False for a table that another tool creates |
    | `verbose_name` | `'article'` | what an interface calls one of them |
    | `verbose_name_plural` | `'articles'` | what it calls several |

    Grown by each field, in `add_field` and `ManyToManyField.bind`; a composite key comes last:

    | Attribute | `Article` | |
    |---|---|---|
    | `fields` | `{..., 'writer': Article.writer}` | the columns by name |
    | `by_attname` | `{..., 'writer_id': Article.writer}` | the columns by attribute |
    | `many` | `{'labels': ManyToManyField}` | the many-to-many fields by name |
    | `columns` | `(Article.id, ..., Article.writer)` | the columns in the order of a row |
    | `columns_without_key` | `(Article.title, ...)` | those that `save()` updates |
    | `db_filled` | `()` | those whose value the database chooses |
    | `auto_now` | `()` | those that each save sets |
    | `pk` | `Article.id` | the primary key, a `KeyColumns` where it has several columns |
    | `keys` | `(Article.id,)` | its columns |
    | `key_place` | `0` | the index of the key in `columns` |

    When all fields are there:

    | Attribute | `Article` | |
    |---|---|---|
    | `own_saves` | `frozenset()` | which of `save` and `asave` the model overrides |
    | `default_manager` | `None` | where relations to many rows begin; None for all rows |
    | `version` | `None` | the field that counts saves, for optimistic locking |
    | `auto_created` | `False` | True for the table of a many-to-many field without a model |

    When the model at the other end is there, which may be much later:

    | Attribute | `Article` | |
    |---|---|---|
    | `relations` | `{'writer': Relation(...), ...}` | steps to models, by the name in a lookup |
    | `pointers` | `[Article_labels.article]` | foreign keys that point here |

    A way back is a relation as well: `articles` of `Writer`. `pointers` has keys without one, too.

    By queries, which ask here first; emptied when a relation changes:

    | Attribute | `Article` | |
    |---|---|---|
    | `lookups` | `{...}` | what keywords such as `writer__name` were resolved to |
    | `orderings` | `{...}` | the same of names to order by |
    """

    def __init__(self, model: type[Instance], *, table: str, abstract: bool) -> None:
        self.model = model
        self.registry = model._registry
        space: str | None = model.__dict__.get("_space")
        self.space = registry.find_application_folder(model.__module__) if space is None else space
        self.name = model.__name__
        self.abstract = abstract
        self.table_name = table
        self.table = quote(table)
        self.database = Home(DEFAULT)
        self.fields: dict[str, AnyField] = {}
        self.by_attname: dict[str, AnyField] = {}
        self.relations: dict[str, Relation] = {}
        self.many: dict[str, Any] = {}
        self.pointers: list[Any] = []
        self.columns: Fields = ()
        self.columns_without_key: Fields = ()
        self.db_filled: Fields = ()
        self.auto_now: Fields = ()
        self.key_place = 0
        self.pk: AnyField = cast("AnyField", None)
        self.keys: Fields = ()
        self.version: AnyField | None = None
        self.ordering: tuple[str, ...] = ()
        self.latest_by: tuple[str, ...] = ()
        self.constraints: tuple[Constraint, ...] = ()
        self.indexes: tuple[Index | SearchIndex, ...] = ()
        self.auto_created = False
        self.managed = True
        self.verbose_name = ""
        self.verbose_name_plural = ""
        self.own_saves: frozenset[str] = frozenset()
        self.default_manager: Any = None
        self.lookups: dict[str, Any] = {}
        self.orderings: dict[tuple[str, ...], Any] = {}

    def add_field(self, field: AnyField, name: str) -> None:
        """Bind a column field under its name."""
        field.bind(self, name)
        for known in self.fields.values():
            if known.column_name == field.column_name:
                raise ModelError(
                    f"{self.name}.{name} and {self.name}.{known.name} share column "
                    f"{field.column_name!r}"
                )
            if shared := {name, field.attname} & {known.name, known.attname}:
                raise ModelError(
                    f"{self.name}.{name} and {self.name}.{known.name} share the attribute "
                    f"{min(shared)!r}: rename one and keep its column with db_column="
                )
        self.fields[name] = field
        self.by_attname[field.attname] = field
        self.columns = tuple(self.fields.values())
        if field.primary_key:
            if self.pk is not None:  # pyright: ignore[reportUnnecessaryComparison] - None until the key is found
                raise ModelError(f"{self.name} has two primary keys: {self.pk.name!r} and {name!r}")
            self.pk = field
            self.keys = (field,)
        self.columns_without_key = tuple(f for f in self.columns if not f.primary_key)
        self.db_filled = tuple(f for f in self.columns if f.db_fills)
        self.auto_now = tuple(f for f in self.columns if getattr(f, "auto_now", False))
        self.key_place = next((i for i, f in enumerate(self.columns) if f.primary_key), 0)

    def set_composite_key(self, names: tuple[str, ...]) -> None:
        """Make several columns the primary key."""
        if self.pk is not None:  # pyright: ignore[reportUnnecessaryComparison] - None until the key is found
            raise ModelError(
                f"{self.name} has two primary keys: {self.pk.name!r} and {', '.join(names)}"
            )
        for name in names:
            if name not in self.fields and name not in self.by_attname:
                raise ModelError(
                    f"{self.build_unknown_name_error(name)}; CompositePrimaryKey must name fields"
                )
        self.keys = tuple(self.fields.get(name) or self.by_attname[name] for name in names)
        self.pk = KeyColumns(self.keys)
        self.pk.bind(self, "pk")

    def add_relation(self, relation: Relation) -> None:
        """Make a relation known under its name; names of fields and other relations may not be
        reused.
        """
        known = self.relations.get(relation.name)
        own = relation.name in self.many or relation.kind == "forward"  # a field of this model
        clash = not own and (relation.name in self.fields or relation.name in self.by_attname)
        if clash or (known is not None and known.kind != relation.kind):
            raise ModelError(
                f"{self.name} has {relation.name!r} already: give {relation.target.name} a "
                "related_name"
            )
        if not own and self.model._has_non_field_attribute(relation.name):
            raise ModelError(
                f"{self.name}.{relation.name} cannot lead to {relation.target.name}: {self.name} "
                "has another attribute of that name; give the relation a related_name"
            )
        if known is not None and _targets_conflict(known, relation):
            raise ModelError(
                f"{relation.name!r} on {self.name} would mean both {known.target.name} and "
                f"{relation.target.name}: "
                "give one a related_name"
            )
        self.relations[relation.name] = relation
        self.clear_path_caches()

    def add_incoming_foreign_key(self, key: Any) -> None:
        """Make a foreign key that points here known; those of models that were replaced go."""
        self.pointers = [known for known in self.pointers if known is not key and known.is_in_use]
        self.pointers.append(key)

    def drop_relation(self, relation: Relation) -> None:
        """Forget a relation whose text turned out to mean another model."""
        if self.relations.get(relation.name) is relation:
            del self.relations[relation.name]
            self.model._remove_relation_accessor(relation)

    def has_name(self, name: str) -> bool:
        """Return True for a field, the column of a key, a relation, and `pk`."""
        return (
            name in self.fields or name in self.by_attname or name in self.relations or name == "pk"
        )

    def clear_path_caches(self) -> None:
        """Drop what lookups and orderings led to: one may mean another model by now."""
        self.lookups.clear()
        self.orderings.clear()

    def find(self, name: str) -> AnyField | Relation | None:
        """Return the field or relation that `name` is as one step of a lookup path, or None."""
        if name == "pk":
            return self.pk
        relation = self.relations.get(name)
        if relation is not None:
            relation.require_one_database()
            return relation
        return self.fields.get(name) or self.by_attname.get(name)

    def require_column(self, name: str) -> AnyField:
        """Return the column field with this name or attribute; raise `FieldError` without one."""
        found = self.fields.get(name) or self.by_attname.get(name)
        if found is None:
            raise self.build_unknown_name_error(name)
        return found

    def build_unknown_name_error(self, name: str) -> FieldError:
        """Return the error for a name this model does not have, with the nearest one it has.

        Relations that wait for a model to be defined are resolved first, if it is there by now:
        their way back is a name of this one as well.
        """
        self.registry.resolve_pending_targets()
        import difflib

        names = sorted({*self.fields, *self.by_attname, *self.relations, "pk"})
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(names)}"
        return FieldError(f"{self.name} has no field {name!r}: {hint}")

    def __repr__(self) -> str:
        return f"<Meta of {self.name}>"


def find_owner_meta(field: AnyField) -> Meta:
    """The description of the model that a field belongs to."""
    return cast("Meta", field.meta)


def _targets_conflict(known: Relation, new: Relation) -> bool:
    one, other = known.target.model, new.target.model
    if not known.target.registry.has_model(known.target):
        return False  # its module was imported again, and it moved
    if one is other:
        return known.target_field is not new.target_field
    # a reloaded model has the same names
    return (one.__module__, one.__qualname__) != (other.__module__, other.__qualname__)
