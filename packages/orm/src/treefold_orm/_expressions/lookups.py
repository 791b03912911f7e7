"""Lookups: `author__name__icontains` resolved against a model.

`parse_lookup` resolves a keyword once per model and caches it, except for keys of JSON and keys of
several columns; `Lookup.prepare_value` checks a value against the field it is compared with.
Sensitive fields are refused here, so no keyword can feel its way to a secret. Nothing here builds
SQL.

Example, keywords of a model `Post` and the parts that they are read into:

| keyword | hops | column | transforms | keys | op |
|---|---|---|---|---|---|
| `title` | | `title` | | | `exact` |
| `author` | | `author_id` | | | `exact` |
| `author__id__in` | | `author_id` | | | `in` |
| `author__name__icontains` | `author` | `name` | | | `icontains` |
| `tags` | `tags` | `id` | | | `exact` |
| `published__year__gte` | | `published` | `year` | | `gte` |
| `published__date__week_day` | | `published` | `date week_day` | | `exact` |
| `payload__size__0__gt` | | `payload` | | `size 0` | `gt` |
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from treefold_orm._base.errors import FieldError, FieldValueError
from treefold_orm._base.names import check_untainted
from treefold_orm._base.records import Record, frozen_record
from treefold_orm._expressions import json_lookups
from treefold_orm._expressions.template import Template
from treefold_orm._fields.base import AnyField, Field
from treefold_orm._fields.keys import KeyColumns
from treefold_orm._fields.meta import Meta, Relation, find_owner_meta
from treefold_orm._fields.numbers import BigIntegerField, IntegerField
from treefold_orm._fields.relations import is_foreign_key
from treefold_orm._fields.structured import ArrayField, EnumField, JSONField
from treefold_orm._fields.text import TextField
from treefold_orm._fields.times import DateField, DateTimeField, TimeField
from treefold_orm._search.search_index import require_search_index
from treefold_orm._search.search_text import as_query

NOTHING: Any = object()  # the lookup takes no parameter
MAX_HOPS = 16
"""Relations in one lookup: each is a join, and `boss__boss__boss...` could go on without end.

SQLite joins at most 64 tables in a statement, so that three such paths still have room in one.
"""
MAX_CACHED = 2048
"""Lookups, and orderings, that one model remembers.

A program has far fewer; the bound is for those that requests put together, such as orders by any
permutation of names.
"""

COMPARISONS = frozenset({"exact", "gt", "gte", "lt", "lte", "in", "range", "isnull"})
TEXTUAL = frozenset(
    {
        "iexact",
        "contains",
        "icontains",
        "startswith",
        "istartswith",
        "endswith",
        "iendswith",
        "regex",
        "iregex",
    }
)
ARRAY = frozenset({"contains", "contained_by", "overlap"})
OPERATORS = COMPARISONS | TEXTUAL | ARRAY | json_lookups.OPERATORS | {"search"}
DATE_PARTS = frozenset(
    {"year", "iso_year", "quarter", "month", "day", "week", "week_day", "iso_week_day"}
)
TIME_PARTS = frozenset({"hour", "minute", "second"})

_INTEGER: IntegerField[int] = IntegerField()
_BIG: BigIntegerField[int] = BigIntegerField()
_TEXT: TextField[str] = TextField()
_DATE: DateField[Any] = DateField()
_TIME: TimeField[Any] = TimeField()


@frozen_record
class CustomLookup(Record):
    """A lookup that the application registered for some classes of fields."""

    template: Template
    on: tuple[type[AnyField], ...]
    takes: AnyField | None


custom_lookups: dict[str, list[CustomLookup]] = {}


def find_custom_lookup(op: str, field: AnyField) -> CustomLookup | None:
    """The registered lookup of this name that fits a field; the closest class wins."""
    fitting = [known for known in custom_lookups.get(op, ()) if isinstance(field, known.on)]
    return min(fitting, key=lambda known: _compute_mro_distance(field, known.on), default=None)


def _compute_mro_distance(field: AnyField, classes: tuple[type[AnyField], ...]) -> int:
    line = type(field).__mro__
    return min(line.index(kind) for kind in classes if kind in line)


_EQUALITY_PARTS = attrgetter("hops", "column", "transforms", "keys", "op", "takes", "search")


class Lookup:
    """One resolved lookup: the way to a column, the part taken from it, and how it is compared.

    Attributes: `hops` and `column` lead to the column; `transforms` are date parts and the like;
    `keys` is a JSON path; `op` is one of `OPERATORS`; `field` is what the right side is checked
    against; `null` is the lookup that is used when the right side is None; `custom` is set for a
    registered one, `search` for a full text search.
    """

    def __init__(
        self,
        name: str,
        hops: tuple[Relation, ...],
        column: AnyField,
        op: str,
        field: AnyField,
        transforms: tuple[str, ...] = (),
        keys: tuple[str, ...] | None = None,
        *,
        takes: bool = True,
        custom: CustomLookup | None = None,
        search: str | None = None,
    ) -> None:
        self.name = name
        self.hops = hops
        self.column = column
        self.op = op
        self.field = field
        self.transforms = transforms
        self.keys = keys
        self.takes = takes
        self.custom = custom
        self.search = search
        self.null: Lookup | None = None
        self.json = isinstance(column, JSONField) and custom is None and not transforms
        # the check of a bare value, where no other step is needed
        plain = op == "exact" and custom is None and not self.json
        self.exact = field.coerce if plain else None

    def with_operator(
        self, op: str, *, takes_value: bool = False, search: str | None = None
    ) -> Lookup:
        """The same way to the column with another comparison."""
        way = self.name, self.hops, self.column, op, self.field, self.transforms, self.keys
        return Lookup(*way, takes=takes_value, search=search)

    def build_equality_key(self) -> tuple[Any, ...]:
        """The parts by which two lookups are equal."""
        return _EQUALITY_PARTS(self)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Lookup) and self.build_equality_key() == other.build_equality_key()
        )

    def __hash__(self) -> int:
        # a hash is taken for each query, and these parts tell most lookups apart
        return hash((self.column, self.op, self.keys))

    def prepare_value(self, value: Any) -> tuple[Lookup, Any]:
        """Check `value`; return the lookup to use and its parameter, or `NOTHING` where it takes
        none.
        """
        if self.op == "exact" and value is None:
            return self._make_null_lookup(), NOTHING
        if value is None:
            raise FieldError(f"{self.name}__{self.op} cannot compare with None: use isnull")
        if self.json and self.op != "isnull":
            test, param = json_lookups.prepare_json_test(self, value)
            takes = param is not None
            tested = self.with_operator(f"json:{test}", takes_value=takes)
            return tested, param if takes else NOTHING
        if self.op == "exact":
            return self, self._coerce_value(value)
        return _PREPARE.get(self.op, _prepare_scalar)(self, value)

    def _coerce_value(self, value: Any) -> Any:
        try:
            return self.field.coerce(value)
        except FieldValueError:
            meta = getattr(value, "_meta", None)
            if meta is None or meta.pk is not self.column:
                raise
        if value.pk is None:  # an instance stands for its key where a path ends at its model
            raise self.column.build_value_error(f"that {meta.name} is not saved yet")
        return self.field.coerce(value.pk)

    def _make_null_lookup(self) -> Lookup:
        if self.null is None:
            # at a path, None is the null of JSON; the column itself has NULL
            self.null = self.with_operator("json:null" if self.keys is not None else "null")
        return self.null


def _prepare_scalar(lookup: Lookup, value: Any) -> tuple[Lookup, Any]:
    return lookup, lookup.field.coerce(value)


def _prepare_text(lookup: Lookup, value: Any) -> tuple[Lookup, Any]:
    return lookup, json_lookups.require_text_value(lookup, value)


def _prepare_isnull(lookup: Lookup, value: Any) -> tuple[Lookup, Any]:
    if not isinstance(value, bool):
        raise FieldError(f"{lookup.name}__isnull takes True or False, not {type(value).__name__}")
    if lookup.keys is not None:
        return lookup.with_operator("json:missing" if value else "json:present"), NOTHING
    return lookup.with_operator("null" if value else "notnull"), NOTHING


def _prepare_in(lookup: Lookup, value: Any) -> tuple[Lookup, Any]:
    items = json_lookups.require_lookup_items(lookup, value)
    given = [item for item in items if item is not None]
    if lookup.field.fits_all(given):
        return lookup, given
    return lookup, list(map(lookup._coerce_value, given))


def _prepare_range(lookup: Lookup, value: Any) -> tuple[Lookup, Any]:
    items = json_lookups.require_lookup_items(lookup, value)
    if len(items) != 2:
        raise FieldError(f"{lookup.name}__range takes two values")
    return lookup, [lookup.field.coerce(item) for item in items]


def _prepare_search(lookup: Lookup, value: Any) -> tuple[Lookup, Any]:
    query = as_query(value)
    return lookup.with_operator("search", takes_value=True, search=query.kind), query.text


_PREPARE: dict[str, Any] = {
    "search": _prepare_search,
    "in": _prepare_in,
    "range": _prepare_range,
    "isnull": _prepare_isnull,
    **dict.fromkeys(TEXTUAL - {"contains"}, _prepare_text),
}


def parse_lookup(meta: Meta, name: str, *, from_typed_column: bool = False) -> Lookup:
    """Return the lookup that `name` stands for on a model.

    `from_typed_column` is set when code, not a keyword, named the path; only then sensitive fields
    may be reached. Raises `FieldError` for unknown names and `TaintedInput` for names that come
    from a request.
    """
    # A typed path may lead to a secret: what was found for it must not answer a keyword. The class
    # is asked for, since a name of a request equals the plain one as a key of the cache.
    key = f"!{name}" if from_typed_column else name
    found = meta.lookups.get(key)
    if found is not None and name.__class__ is str:
        return found
    check_untainted(name)
    lookup = _resolve_lookup(meta, name, typed=from_typed_column)
    if isinstance(lookup.column, KeyColumns):
        return lookup  # never remembered: filter() has a way of its own for it
    # keys of JSON may be data: their paths would fill the cache
    if lookup.keys is None and len(meta.lookups) < MAX_CACHED:
        meta.lookups[key] = lookup
    return lookup


def walk_path(meta: Meta, path: str) -> tuple[tuple[Relation, ...], AnyField, list[str]]:
    """Follow `path` from a model; return the relations passed, the column found, and the parts
    left over.
    """
    check_untainted(path)
    meta.registry.resolve_pending_targets()
    parts = path.split("__")
    hops: list[Relation] = []
    here = meta
    while True:
        part = parts.pop(0)
        found = here.find(part)
        if found is None:
            raise here.build_unknown_name_error(part)
        if isinstance(found, Field):
            if is_foreign_key(found):
                found.known_target  # noqa: B018 - raises while the target is not defined
            break
        hops.append(found)
        here = found.target
        if len(hops) > MAX_HOPS:
            raise FieldError(
                f"{meta.name} is asked for more than {MAX_HOPS} relations in one lookup"
            )
        if not parts or here.find(parts[0]) is None:
            if parts and parts[0] not in OPERATORS and parts[0] not in custom_lookups:
                raise here.build_unknown_name_error(parts[0])
            found = here.pk
            break
    # `writer__id` is `writer_id` of the row itself: no join
    if hops and hops[-1].kind == "forward" and found is hops[-1].target_field:
        found = hops.pop().source_field
    return tuple(hops), found, parts


def remove_deferred_columns(
    meta: Meta, loaded: frozenset[str] | None, names: frozenset[str]
) -> frozenset[str]:
    """The paths of columns that are loaded without those that `names` lead to; keys always are.

    `loaded` is what was loaded until now, None for everything. With a joined `writer` and the names
    `body` and `writer__born`, `{"title", "writer__name"}` may be left.
    """
    left = {field.name for field in meta.columns} if loaded is None else set(loaded)
    for name in names:
        way, _, last = name.rpartition("__")
        here = meta
        for part in way.split("__") if way else ():
            here = here.relations[part].target
        column = here.fields.get(last) or here.by_attname.get(last)
        prefix = f"{way}__" if way else ""
        paths = {f"{prefix}{field.name}" for field in here.columns}
        # a joined model of which nothing is named comes whole: all of it is named, but for one
        if way and not left & paths:
            left |= paths
        if column is not None and column not in here.keys:
            left -= {f"{prefix}{column.name}", f"{prefix}{column.attname}"}
    return frozenset(left)


def refuse_sensitive(meta: Meta, column: AnyField, path: str) -> None:
    """Raise `FieldError` if a keyword or string names a sensitive field."""
    if column.sensitive:
        raise FieldError(
            f"{meta.name}: {path!r} leads to a sensitive field; use the typed expression "
            f"{column.meta.name}.{column.name}"
        )


@frozen_record
class _Tail(Record):
    """What follows the column in a keyword: `length__gte` of `name__length__gte`.

    `field` is what the column has become by `transforms`; `custom` is set where `op` is the name of
    a registered lookup. `keys` are the path into a document, None for the whole of it.
    """

    op: str
    field: AnyField
    transforms: tuple[str, ...] = ()
    keys: tuple[str, ...] | None = None
    custom: CustomLookup | None = None


def _resolve_lookup(meta: Meta, name: str, *, typed: bool) -> Lookup:
    hops, column, parts = walk_path(meta, name)
    if not typed:
        refuse_sensitive(meta, column, name)
    tail = _read_tail(meta, name, column, parts)
    return Lookup(
        name.removesuffix(f"__{tail.op}"),
        hops,
        column,
        tail.op,
        _choose_value_field(tail),
        tail.transforms,
        tail.keys,
        takes=tail.op != "isnull",
        custom=tail.custom,
    )


def _read_tail(meta: Meta, name: str, column: AnyField, parts: list[str]) -> _Tail:
    custom = find_custom_lookup(parts[-1], column) if parts else None
    # first: a registered lookup on JSON would be taken for a key of the document otherwise
    if custom is not None and len(parts) == 1:
        return _Tail(parts[0], column, custom=custom)
    if not isinstance(column, JSONField):
        return _read_transforms_and_operator(meta, name, column, parts)
    if custom is not None:  # its SQL is about the column
        raise FieldError(
            f"{meta.name}: {name!r} must not have a path before {parts[-1]!r}, a registered "
            "lookup takes the whole document"
        )
    return _read_json_path_and_operator(meta, name, column, parts)


def _read_json_path_and_operator(
    meta: Meta, name: str, column: AnyField, parts: list[str]
) -> _Tail:
    has_operator = bool(parts) and parts[-1] in OPERATORS
    op = parts[-1] if has_operator else "exact"
    keys = parts[:-1] if has_operator else parts
    _check_json_lookup(meta, name, op=op, keys=keys)
    return _Tail(op, column, keys=tuple(keys) if keys else None)


def _read_transforms_and_operator(
    meta: Meta, name: str, column: AnyField, parts: list[str]
) -> _Tail:
    field = column
    transforms: list[str] = []
    op: str | None = None
    for part in parts:
        transformed = _infer_transform_result(field, part)
        if op is not None:
            raise FieldError(f"{meta.name}: nothing can follow {op!r} in {name!r}")
        if transformed is None:
            op = part
        else:
            field = transformed
            transforms.append(part)
    op = "exact" if op is None else op
    # a lookup is registered for a class of fields: after a transform, for that of its result
    custom = find_custom_lookup(op, field)
    if custom is None:
        _check_lookup_operator(meta, name, field=field, op=op)
    return _Tail(op, field, tuple(transforms), custom=custom)


def _choose_value_field(tail: _Tail) -> AnyField:
    """The field that the value on the right is checked against."""
    field = tail.field
    if tail.custom is not None and tail.custom.takes is not None:
        return tail.custom.takes
    is_text_test = tail.op in TEXTUAL and not isinstance(field, ArrayField)
    if tail.op not in json_lookups.KEYS and not is_text_test:
        return field
    # a piece is compared as plain text: `startswith="192.0"` is no IP address by itself
    return field if isinstance(field, TextField) and not field.normalises else _TEXT


def _infer_transform_result(field: AnyField, part: str) -> AnyField | None:
    if isinstance(field, DateTimeField):
        if part == "date":
            return _DATE
        if part == "time":
            return _TIME
        return _INTEGER if part in DATE_PARTS or part in TIME_PARTS else None
    if isinstance(field, DateField) and part in DATE_PARTS:
        return _INTEGER
    if isinstance(field, TimeField) and part in TIME_PARTS:
        return _INTEGER
    if isinstance(field, (TextField, ArrayField)) and part == "length":
        return _BIG
    return None


def _check_json_lookup(meta: Meta, name: str, *, op: str, keys: list[str]) -> None:
    if op not in json_lookups.OPERATORS:
        raise FieldError(f"{meta.name}: {op!r} in {name!r} does not work on JSON here")
    json_lookups.check_json_path_keys(meta.name, name, keys)


def _check_lookup_operator(meta: Meta, name: str, *, field: AnyField, op: str) -> None:
    allowed = COMPARISONS
    if isinstance(field, ArrayField):
        allowed = frozenset({"exact", "isnull"}) | ARRAY
    elif isinstance(field, TextField) and op == "search":
        require_search_index(find_owner_meta(field), [field])
        return
    elif field.internal == "text" or (
        isinstance(field, EnumField) and field.base.internal == "text"
    ):
        allowed = COMPARISONS | TEXTUAL
    elif field.internal in {"boolean", "binary"}:
        allowed = frozenset({"exact", "isnull", "in"})
    if op not in allowed:
        import difflib

        known = OPERATORS | DATE_PARTS | TIME_PARTS
        close = [] if op in known else difflib.get_close_matches(op, sorted(known), n=1)
        hint = (
            f"did you mean {close[0]!r}?" if close else f"use one of {', '.join(sorted(allowed))}"
        )
        raise FieldError(
            f"{meta.name} has no lookup {op!r} for {name.removesuffix('__' + op)!r}: {hint}"
        )
