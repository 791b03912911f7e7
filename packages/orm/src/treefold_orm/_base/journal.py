"""Journal: the state of instances before the operations of one transaction or savepoint.

What `save()` compares with, generated keys, versions and times are true only while the transaction
stands; a rollback puts them back. Attributes that the application has set since stay as they are.
The operations of a transaction run with its journal active; outside of one there is none. An
instance is any object with a dictionary here: no models, no I/O.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

from treefold_orm._base.errors import ConnectionFailed
from treefold_orm._base.statement import ATOMIC, Operation, Statement

T = TypeVar("T")

STATE = ("_row", "_shape", "_alias", "_read_in")
"""Attributes of an instance that speak of its stored row."""

NO_ANSWER = (ConnectionFailed, GeneratorExit)
"""Errors of a statement that may have been executed all the same: the connection broke, or the
caller was cancelled.
"""

_ABSENT: Any = object()
_NOTHING: dict[Any, Any] = {}  # in place of a dictionary that most instances never need
_SWEEP = 1000
"""Entries from which on those of dropped instances are removed; fewer cost less memory than time.
"""


_ALL_ABSENT = (_ABSENT,) * len(STATE)
_OF_STATE = frozenset(STATE)

# a new instance that only got its key: weak reference, attribute, value before, value given
_New = tuple[weakref.ref[Any], str, Any, Any]


class _Active(threading.local):
    journal: Journal | None = None


active = _Active()
"""The journal of the operation that runs on this thread."""


class _InstanceSnapshot:
    """One instance before its first change: `state` as in STATE, `values` of attributes that an
    operation has set (before, and as set), `caches` of related rows as they were, and the
    `references`: attributes of others that hold the key which it got.
    """

    __slots__ = ("caches", "ref", "references", "state", "values")

    def __init__(self, instance: Any) -> None:
        self.ref: weakref.ref[Any] = weakref.ref(instance)
        self.state: tuple[Any, ...] = tuple(map(instance.__dict__.get, STATE, _ALL_ABSENT))
        self.values: dict[str, tuple[Any, Any]] = {}
        self.caches: dict[str, Any] = _NOTHING
        self.references: dict[tuple[int, str], tuple[weakref.ref[Any], Any]] = _NOTHING

    def restore_instance(self, *, commit_unanswered: bool) -> None:
        instance = self.ref()
        if instance is None:
            return
        held = instance.__dict__
        for name, value in zip(STATE, self.state, strict=True):
            _restore_attribute(held, name, value)
        if commit_unanswered and held.get("_row"):
            held["_read_in"] = UNKNOWN
        for name, (before, given) in self.values.items():
            # another object was set by the application since, and stays
            if held.get(name, _ABSENT) is given:
                _restore_attribute(held, name, before)
        for name, value in self.caches.items():
            _restore_attribute(held, name, value)
        for (_, name), (ref, key) in self.references.items():
            referring = ref()
            if referring is not None and referring.__dict__.get(name) is key:
                referring.__dict__[name] = None
                referring.__dict__[f"_awaits_{name}"] = True  # it takes the next key of the target


def _expand_compact_entry(new: _New) -> _InstanceSnapshot:
    made: _InstanceSnapshot = object.__new__(_InstanceSnapshot)
    made.ref, name, before, given = new
    made.state = _ALL_ABSENT
    made.values = {name: (before, given)}
    made.caches = made.references = _NOTHING
    return made


def _restore_attribute(instance_dict: dict[str, Any], name: str, value: Any) -> None:
    if value is _ABSENT:
        instance_dict.pop(name, None)
    else:
        instance_dict[name] = value


class Journal:
    """Instances and their former state, held weakly: a dropped instance needs none.

    `written` says that the transaction may have changed rows, `undone` that it was rolled back,
    `single` that it is of one operation alone and ends with it.
    """

    __slots__ = ("_former", "_limit", "_merged", "parent", "single", "undone", "written")

    def __init__(self, parent: Journal | None = None) -> None:
        self.parent = parent
        self.written = False
        self.undone = False
        self.single = False
        self._merged: Journal | None = None
        self._former: dict[int, _InstanceSnapshot | _New] = {}
        self._limit = _SWEEP

    def __reduce__(self) -> tuple[object, ...]:
        # a pickled instance leaves the transaction: its stored row is a guess
        return _load_unknown_journal, ()

    def __len__(self) -> int:
        return len(self._former)

    def ensure_state_recorded(self, instance: Any) -> _InstanceSnapshot:
        """Keep the state of an instance before its first change."""
        found = self._find_snapshot(instance)
        if found is None:
            if len(self._former) >= self._limit:
                self._drop_dead_entries()
            found = self._former[id(instance)] = _InstanceSnapshot(instance)
        return found

    def _find_snapshot(self, instance: Any) -> _InstanceSnapshot | None:
        found = self._former.get(id(instance))
        if found.__class__ is tuple:  # most of these are never asked for
            found = self._former[id(instance)] = _expand_compact_entry(cast("_New", found))
        former = cast("_InstanceSnapshot | None", found)
        # an id() is used again once its object is gone
        return None if former is None or former.ref() is not instance else former

    def record_attribute_change(self, instance: Any, name: str, new_value: Any) -> None:
        """Keep the value of an attribute that an operation is about to set to `new_value`."""
        former = self.ensure_state_recorded(instance)
        now = instance.__dict__.get(name, _ABSENT)
        before, given = former.values.get(name, (now, now))
        # a value that the application has set in between is the one that a rollback goes back to
        former.values[name] = (before if now is given else now, new_value)

    def record_attribute_changes(
        self, instances: Sequence[Any], name: str, new_values: Iterable[Any], *, are_new: bool
    ) -> None:
        """`record_attribute_change` for many instances, each with a value of its own. Those that
        `are_new` have no attribute of `STATE`.
        """
        former, limit, reference = self._former, self._limit, weakref.ref
        for instance, value in zip(instances, new_values, strict=True):
            key, held = id(instance), instance.__dict__
            is_new = are_new or _OF_STATE.isdisjoint(held)
            if key in former or len(former) >= limit or not is_new:
                self.record_attribute_change(instance, name, value)
                former, limit = self._former, self._limit
            else:
                former[key] = (reference(instance), name, held.get(name, _ABSENT), value)

    def record_related_cache(self, instance: Any, name: str) -> None:
        """Keep a cache of related rows that is about to be emptied or loaded again."""
        former = self.ensure_state_recorded(instance)
        # a new dictionary, since _NOTHING is shared by all; the oldest state of a cache wins
        former.caches = {name: instance.__dict__.get(name, _ABSENT), **former.caches}

    def record_copied_key(self, instance: Any, name: str, target: Any, key_attribute: str) -> None:
        """Note that an attribute was set to the key of `target`; where this transaction has given
        the key, the attribute is emptied with it.
        """
        level: Journal | None = self
        while level is not None:
            former = level._find_snapshot(target)
            if former is not None and key_attribute in former.values:
                held = (weakref.ref(instance), instance.__dict__[name])
                former.references = {**former.references, (id(instance), name): held}
                return
            level = level.parent

    def find_innermost_written_journal(self) -> Journal | None:
        """The innermost transaction whose rollback makes rows untrue that are read now."""
        found: Journal | None = self
        while found is not None and not found.written:
            found = found.parent
        return found

    @property
    def is_undone(self) -> bool:
        """True once this transaction, or one that it became part of, was rolled back."""
        found: Journal | None = self
        while found is not None:
            if found.undone:
                return True
            found = found._merged
        return False

    def roll_back_instances(self, *, commit_unanswered: bool = False) -> None:
        """Put every instance back: the transaction was rolled back.

        `commit_unanswered` says that its COMMIT was not answered, so that a stored row may hold
        either.
        """
        self.undone = True
        former, self._former = self._former, {}
        for entry in former.values():
            made = _expand_compact_entry(entry) if isinstance(entry, tuple) else entry
            made.restore_instance(commit_unanswered=commit_unanswered)

    def merge_into_parent(self) -> None:
        """End with a commit; the entries of a savepoint become part of its transaction."""
        former, self._former = self._former, {}
        parent = self._merged = self.parent
        if parent is None:
            return
        parent.written = parent.written or self.written
        for key, later in former.items():
            if key not in parent._former:
                parent._former[key] = later
                continue
            entry = _expand_compact_entry(later) if isinstance(later, tuple) else later
            known = parent._find_snapshot(entry.ref())
            if known is None:
                parent._former[key] = entry
                continue
            # the transaction's own entries are older than those of the savepoint, and win
            known.caches = entry.caches | known.caches
            known.references = known.references | entry.references
            for name, (before, given) in entry.values.items():
                earlier, put = known.values.get(name, (before, before))
                known.values[name] = (earlier if before is put else before, given)

    def call_with_journal_active(self, function: Callable[..., T], *args: Any) -> T:
        """Run one step of an operation with this journal active."""
        outer, active.journal = active.journal, self
        try:
            return function(*args)
        finally:
            active.journal = outer

    def _drop_dead_entries(self) -> None:
        kept = self._former.items()
        self._former = {k: e for k, e in kept if _extract_instance_reference(e)() is not None}
        # twice as many as are alive: the cost of all sweeps stays in proportion to the entries
        self._limit = max(_SWEEP, 2 * len(self._former))


def _extract_instance_reference(entry: _InstanceSnapshot | _New) -> weakref.ref[Any]:
    return entry[0] if isinstance(entry, tuple) else entry.ref


UNKNOWN = Journal()
"""Stands for a transaction that was undone: the row is a guess, `save()` writes all."""
UNKNOWN.undone = True


def _load_unknown_journal() -> Journal:
    return UNKNOWN


def wrap_operation_with_journal(
    operation: Operation[T],
    journal: Journal,
    first_statement: Statement | None = None,
    *,
    in_own_transaction: bool = False,
) -> Operation[T]:
    """The same operation with its changes to instances in `journal`.

    `first_statement` is its first one where it has begun; `in_own_transaction` says that it runs in
    a transaction or savepoint of its own, so that it need not ask for one.
    """
    step, send = journal.call_with_journal_active, operation.send
    try:
        if first_statement is None:
            first_statement = step(send, None)
        while True:
            if in_own_transaction and first_statement is ATOMIC:
                first_statement = step(send, None)
                continue
            try:
                outcome = yield first_statement
            except GeneratorExit:
                step(operation.close)
                raise
            except BaseException as error:  # noqa: BLE001, RUF100 - handed on as it is
                first_statement = step(operation.throw, error)
            else:
                first_statement = step(send, outcome)
    except StopIteration as stop:
        return stop.value


def record_state_for_undo(instance: Any) -> None:
    """Keep the state of an instance for a rollback, before changing it."""
    journal = active.journal
    if journal is not None:
        journal.ensure_state_recorded(instance)


def mark_row_uncertain(instance: Any) -> None:
    """Note that a statement which writes the row was not answered: `save()` writes all of it."""
    record_state_for_undo(instance)
    instance._read_in = UNKNOWN


def set_attribute_with_undo(instance: Any, name: str, value: Any) -> None:
    """Set an attribute to what the database or `save()` gave; a rollback takes it back."""
    journal = active.journal
    if journal is not None:
        journal.record_attribute_change(instance, name, value)
    setattr(instance, name, value)


def record_cache_for_undo(instance: Any, name: str) -> None:
    """Keep a cache of related rows that is about to be replaced; a rollback puts it back."""
    journal = active.journal
    if journal is not None:
        journal.record_related_cache(instance, name)


def drop_cache_with_undo(instance: Any, name: str) -> None:
    """Empty a cache of related rows; a rollback puts it back."""
    journal = active.journal
    if journal is not None:
        journal.record_related_cache(instance, name)
    instance.__dict__.pop(name, None)
