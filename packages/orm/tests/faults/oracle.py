"""What the tables must hold and what each instance must show, kept in plain Python.

A level is a transaction or savepoint. It keeps the rows and the instances as they were when it
began; a rollback puts them back, but for attributes that the application has set since.
"""

from __future__ import annotations

import copy
import dataclasses
import decimal
from collections.abc import Iterable, Sequence
from typing import Any

from treefold_orm import (
    F,
    FieldValueError,
    Model,
    StaleObject,
    UniqueViolation,
    fields,
)


class Owner(Model):
    """What a coin may point to."""

    _space = "faults"
    name = fields.CharField(max_length=20)


class Coin(Model):
    """Nothing is set by `save()` but the key."""

    _space = "faults"
    name = fields.CharField(max_length=20, unique=True)
    count = fields.IntegerField(default=0)
    price = fields.DecimalField(max_digits=12, decimal_places=2, default=decimal.Decimal(0))
    owner = fields.ForeignKey(Owner, null=True)
    owner_id: int | None


class Counted(Model):
    """A version and a time that `save()` sets."""

    _space = "faults"
    name = fields.CharField(max_length=20, unique=True)
    count = fields.IntegerField(default=0)
    version = fields.IntegerField(default=1)
    changed = fields.DateTimeField(auto_now=True)

    class Meta:
        version_field = "version"


MODELS: tuple[type[Model], ...] = (Coin, Counted)
NAMES: dict[Any, tuple[str, ...]] = {
    Coin: ("name", "count", "price", "owner_id"),
    Counted: ("name", "count", "version", "changed"),
}
Row = dict[str, Any]
Refusal = type[Exception] | None


class More:
    """`F("count") + by` as an attribute."""

    def __init__(self, by: int) -> None:
        self.by = by
        self.made: Any = F("count") + by

    def __repr__(self) -> str:
        return f"count + {self.by}"


@dataclasses.dataclass
class State:
    """What is known of one instance: `seen` is the row that `save()` compares with, `mark` the
    level whose rollback makes that a guess, `unsure` says that it is one.
    """

    status: str
    attrs: Row
    seen: Row = dataclasses.field(default_factory=dict[str, Any])
    mark: Level | None = None
    unsure: bool = False

    def copied(self) -> State:
        """The same, to be changed on its own."""
        return dataclasses.replace(self, attrs=dict(self.attrs), seen=dict(self.seen))


class Shadow:
    """An instance and its state."""

    def __init__(self, obj: Any, state: State) -> None:
        self.obj = obj
        self.model: Any = type(obj)
        self.state = state

    @property
    def key(self) -> Any:
        """The key that the instance must show."""
        return self.state.attrs["id"]

    @property
    def inserts(self) -> bool:
        """True where `save()` inserts."""
        return self.state.status == "new" or self.key is None

    @property
    def shows(self) -> Row:
        """The attributes as they are, an expression as the `More` that it was made of."""
        found: Row = {}
        for name, value in self.state.attrs.items():
            shown = self.obj.__dict__.get(name)
            found[name] = value if isinstance(value, More) and shown is value.made else shown
        return found


class Level:
    """A transaction or savepoint that is open."""

    def __init__(self, oracle: Oracle) -> None:
        self.table = copy.deepcopy(oracle.table)
        self.former = {shadow: shadow.state.copied() for shadow in oracle.shadows}
        self.touched: set[Shadow] = set()
        self.hooks: list[str] = []
        self.written = False


class Oracle:
    """The rows, the instances and the levels that are open."""

    def __init__(self) -> None:
        self.table: dict[Any, dict[int, Row]] = {model: {} for model in MODELS}
        self.shadows: list[Shadow] = []
        self.levels: list[Level] = []
        self.hooks: list[str] = []

    # -- levels -----------------------------------------------------------------------------------

    def begin(self) -> Level:
        """Open a level."""
        level = Level(self)
        self.levels.append(level)
        return level

    def commit(self, level: Level) -> None:
        """Close a level; its changes become part of the one around it."""
        assert self.levels.pop() is level
        outer = self.levels[-1] if self.levels else None
        for state in self._states():
            if state.mark is level:
                state.mark = outer
        if outer is None:
            self.hooks += level.hooks
            return
        outer.hooks += level.hooks
        outer.touched |= level.touched
        outer.written = outer.written or level.written

    def rollback(self, level: Level, *, in_doubt: bool = False) -> None:
        """Undo a level and all inside it; `in_doubt` says that it may have been committed."""
        while True:
            last = self.levels.pop()
            for state in self._states():
                if state.mark is last:
                    state.mark, state.unsure = None, True
            for shadow, state in last.former.items():
                if state.mark is last:
                    state.mark, state.unsure = None, True
                if in_doubt and shadow in last.touched and state.seen:
                    state.unsure = True
                shadow.state = state
            self.table = last.table
            if last is level:
                return

    def _states(self) -> Iterable[State]:
        yield from (shadow.state for shadow in self.shadows)
        for level in self.levels:
            yield from level.former.values()

    def writes(self) -> None:
        """Note that a call that may write has begun."""
        if self.levels:
            self.levels[-1].written = True

    def mark(self) -> Level | None:
        """The level whose rollback makes rows untrue that are read now."""
        return next((level for level in reversed(self.levels) if level.written), None)

    # -- instances --------------------------------------------------------------------------------

    def add(self, obj: Any, state: State) -> Shadow:
        """Follow another instance; a rollback takes it back to this state."""
        shadow = Shadow(obj, state)
        self.shadows.append(shadow)
        for level in self.levels:
            level.former[shadow] = state.copied()
        return shadow

    def made(self, obj: Any, attrs: Row) -> Shadow:
        """Follow an instance that the application has made."""
        return self.add(obj, State("new", {"id": None, **attrs}))

    def read(self, obj: Any, row: Row) -> Shadow:
        """Follow an instance that a query has returned."""
        attrs = {"id": obj.pk, **row}
        return self.add(obj, State("stored", attrs, dict(row), self.mark()))

    def app_set(self, shadow: Shadow, name: str, value: Any) -> None:
        """Set an attribute as the application does: no rollback takes it back."""
        setattr(shadow.obj, name, value.made if isinstance(value, More) else value)
        shadow.state.attrs[name] = value
        for level in self.levels:
            level.former[shadow].attrs[name] = value

    def touch(self, shadow: Shadow) -> State:
        """The state of an instance that the running call changes."""
        if self.levels:
            self.levels[-1].touched.add(shadow)
        return shadow.state

    # -- what calls do ----------------------------------------------------------------------------

    def taken(self, model: Any, name: str, key: int | None = None) -> bool:
        """True where another row has this name."""
        return any(k != key and row["name"] == name for k, row in self.table[model].items())

    def changed(self, shadow: Shadow) -> list[str]:
        """The columns that `save()` would write."""
        state = shadow.state
        return [
            name
            for name in NAMES[shadow.model]
            if name not in ("version", "changed")
            and (state.unsure or state.attrs[name] != state.seen[name])
        ]

    def sends(self, shadow: Shadow) -> bool:
        """True where `save()` sends a statement, whatever becomes of it."""
        if shadow.inserts:
            return not isinstance(shadow.state.attrs["count"], More)
        if shadow.state.status == "deleted":
            return False
        return shadow.model is Counted or bool(self.changed(shadow))

    def refusal_of_insert(self, shadow: Shadow) -> Refusal:
        """The error of an insert."""
        attrs = shadow.state.attrs
        if isinstance(attrs["count"], More):
            return FieldValueError
        return UniqueViolation if self.taken(shadow.model, attrs["name"]) else None

    def refusal_of_save(self, shadow: Shadow, names: Sequence[str] | None = None) -> Refusal:
        """The error of `save()`."""
        state = shadow.state
        if shadow.inserts:
            return self.refusal_of_insert(shadow)
        if state.status == "deleted":
            return StaleObject
        columns = self.changed(shadow) if names is None else names
        if not columns and (shadow.model is Coin or names is not None):
            return None
        row = self.table[shadow.model].get(shadow.key)
        if row is None or row.get("version") != state.seen.get("version"):
            return StaleObject
        if "name" in columns and self.taken(shadow.model, state.attrs["name"], shadow.key):
            return UniqueViolation
        return None

    def refusal_of_delete(self, shadow: Shadow) -> Refusal:
        """The error of `delete()`."""
        row, state = self.table[shadow.model].get(shadow.key), shadow.state
        if state.status == "deleted" or row is None:
            return None
        return None if row.get("version") == state.seen.get("version") else StaleObject

    def inserted(self, shadow: Shadow) -> None:
        """The row of an instance was inserted."""
        state = self.touch(shadow)
        copied = state.status != "new"
        state.attrs["id"] = shadow.obj.pk
        if copied and shadow.model is Counted:
            state.attrs |= {"version": 1, "changed": shadow.obj.changed}
        self._stored(shadow, {name: state.attrs[name] for name in NAMES[shadow.model]})

    def _stored(self, shadow: Shadow, row: Row) -> None:
        rows = self.table[shadow.model]
        assert shadow.key not in rows, "a key was given twice"
        rows[shadow.key] = row
        state = shadow.state
        state.status, state.seen, state.mark, state.unsure = "stored", dict(row), None, False

    def saved(self, shadow: Shadow, names: Sequence[str] | None = None) -> None:
        """`save()` has returned."""
        if shadow.inserts:
            self.inserted(shadow)
            return
        columns = self.changed(shadow) if names is None else names
        if not columns and (shadow.model is Coin or names is not None):
            return
        self.written(shadow, columns)
        if shadow.model is Counted:
            row, state = self.table[Counted][shadow.key], shadow.state
            row["changed"] = state.attrs["changed"] = state.seen["changed"] = shadow.obj.changed
        if names is None:
            shadow.state.mark, shadow.state.unsure = None, False

    def written(self, shadow: Shadow, columns: Iterable[str]) -> None:
        """Columns of an instance were written to its row."""
        state = self.touch(shadow)
        row = self.table[shadow.model][shadow.key]
        for name in columns:
            value = state.attrs[name]
            if isinstance(value, More):
                value = state.attrs[name] = row[name] + value.by
            row[name] = state.seen[name] = value
        if shadow.model is Counted:
            row["version"] += 1
            state.attrs["version"] = state.seen["version"] = row["version"]

    def deleted(self, shadow: Shadow) -> int:
        """The row of an instance was deleted; returns how many there were."""
        state = self.touch(shadow)
        state.status = "deleted"
        return 1 if self.table[shadow.model].pop(shadow.key, None) is not None else 0

    def refreshed(self, shadow: Shadow, names: Sequence[str] | None) -> None:
        """An instance has read its row again."""
        state = self.touch(shadow)
        row = self.table[shadow.model][shadow.key]
        for name in names or NAMES[shadow.model]:
            state.attrs[name] = state.seen[name] = row[name]
        if names is None or not state.unsure:
            state.mark, state.unsure = self.mark(), False

    def updated(self, model: Any, keys: Iterable[int], name: str, value: Any) -> None:
        """A query has set a column."""
        for key in keys:
            row = self.table[model][key]
            row[name] = row[name] + value.by if isinstance(value, More) else value
            if model is Counted:
                row["version"] += 1

    def upserted(self, shadow: Shadow) -> None:
        """An instance was inserted, or has set `count` of the row with its name."""
        state = self.touch(shadow)
        rows = self.table[shadow.model]
        known = next((k for k, r in rows.items() if r["name"] == state.attrs["name"]), None)
        if known is None:
            self.inserted(shadow)
            return
        rows[known]["count"] = state.attrs["count"]
        if shadow.model is Counted:
            rows[known]["version"] += 1
        state.attrs["id"] = known
        state.status, state.seen = "stored", dict(rows[known])
