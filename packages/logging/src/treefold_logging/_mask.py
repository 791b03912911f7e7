"""Copy a structure with every value under a sensitive key replaced by `***`.

Sensitive keys are defined in `_words`. The walk keeps its own stack, so depth costs memory and
never recursion. A container inside itself is shown as `<cycle>`; a shared container that holds
others is copied only once. Models are recognised by their attributes, without importing packages.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set as AbstractSet
from typing import Any, cast

from treefold_logging._words import harmless, is_sensitive, make_sensitivity_test, verdicts

MASK = "***"
"""Replaces a secret."""

CYCLE = "<cycle>"
"""Replaces a container inside itself."""

_LEAVES = frozenset((str, int, float, bool, type(None), bytes))

Leaf = Callable[[Any], Any]
_kind: Leaf = type  # typed for any argument, for the type checker
# Destination of the copy (container, key), source, and the copy if its members are pending.
_Frame = tuple[Any, Any, Any, Any]


def mask(value: Any, *, extra: Sequence[str] = ()) -> Any:
    """Return a copy of a structure with the values under sensitive keys replaced by `***`.

    Args:
        value: anything. Mappings become dictionaries; lists, tuples and sets keep their kind;
            dataclasses, named tuples, pydantic models and msgspec structs become dictionaries of
            their fields. Anything else is returned as it is. The input is never changed.
        extra: further words; a key that contains one is sensitive too.

    A sensitive value is replaced whatever it is, None and containers included. A set whose masked
    members cannot be hashed becomes a list. A container that cannot be read is shown as `<type>`.
    Source: S-82.
    """
    if extra:
        return copy_masked(value, known_verdicts={}, is_sensitive_key=make_sensitivity_test(extra))
    return copy_masked(value)


def copy_masked(
    value: Any,
    *,
    known_verdicts: dict[str, bool] = verdicts,
    is_sensitive_key: Callable[[str], bool] = is_sensitive,
    convert_leaf: Leaf | None = None,
) -> Any:
    """Copy a structure as `mask` does; with `convert_leaf`, also convert it into JSON values.

    Args:
        known_verdicts: verdicts of keys that need not be judged again.
        is_sensitive_key: the test of a key that is not known.
        convert_leaf: applied to every key and to every value that is not a container; sets become
            lists.
    """
    root: list[Any] = [None]
    stack: list[_Frame] = [(root, 0, value, None)]
    copies: dict[int, tuple[Any, Any]] = {}  # holds the source, so that its id is not reused
    while stack:
        parent, place, source, copy = stack.pop()
        if copy is not None:
            parent[place] = done = _restore_collection_type(source, copy, convert_leaf)
            copies[id(source)] = (source, done)
            continue
        if copies and id(source) in copies:
            parent[place] = copies[id(source)][1]
            continue
        depth = len(stack)
        kind = _kind(source)
        try:
            if kind is dict:
                copy = _copy_mapping_masked(
                    source.items(), stack, known_verdicts, is_sensitive_key, convert_leaf
                )
            elif kind is list or kind is tuple:
                copy = _copy_sequence(source, stack, convert_leaf)
            else:
                copy = _copy_object_or_collection(
                    source, stack, known_verdicts, is_sensitive_key, convert_leaf
                )
        except Exception:  # user code may raise anything; the log must not fail
            del stack[depth:]
            parent[place] = describe_value_type(source)
            continue
        if len(stack) > depth:  # nested containers first, then this one again
            stack.insert(depth, (parent, place, source, copy))
            copies[id(source)] = (source, CYCLE)
        else:
            parent[place] = _restore_collection_type(source, copy, convert_leaf)
    return root[0]


def has_no_sensitive_key(value: Any) -> bool:
    """Return True if a parsed JSON value has no sensitive key; False may be a false alarm.

    It takes an eighth of the time of a copy, because sets of keys and types are compared at once.
    """
    waiting = [value]
    for item in waiting:
        if (kind := _kind(item)) is dict:
            if not (harmless.issuperset(item) or all(_is_harmless_key(key) for key in item)):
                return False
            members = item.values()
        elif kind is list:
            members = item
        else:
            return kind in _LEAVES
        if not _LEAVES.issuperset(map(type, members)):
            waiting += [member for member in members if _kind(member) not in _LEAVES]
            if len(waiting) > _MANY:  # a container inside itself, perhaps
                return False
    return True


_MANY = 10_000


def _is_harmless_key(key: object) -> bool:
    return type(key) is str and not is_sensitive(key)


def describe_value_type(value: object) -> str:
    """Return the text for a value that is not shown: its type, and for bytes the size."""
    if isinstance(value, (bytes, bytearray)):
        return f"<{type(value).__name__} {len(value)}>"
    return f"<{type(value).__name__}>"


# Positional parameters: these run for every container; keywords would cost a tenth of the walk.


def _copy_mapping_masked(
    fields: Iterable[tuple[Any, Any]],
    stack: list[_Frame],
    known: dict[str, bool],
    judge: Callable[[str], bool],
    leaf: Leaf | None,
) -> dict[Any, Any]:
    copy: dict[Any, Any] = {}
    for key, item in fields:
        if (secret := known.get(key)) is None:
            secret = _is_sensitive_key(key, judge)
        shown = key if leaf is None else leaf(key)
        if secret:
            copy[shown] = MASK
        elif type(item) in _LEAVES:
            copy[shown] = item if leaf is None else leaf(item)
        else:
            copy[shown] = None  # keeps the order of the keys
            stack.append((copy, shown, item, None))
    return copy


def _copy_sequence(source: Iterable[Any], stack: list[_Frame], leaf: Leaf | None) -> list[Any]:
    copy: list[Any] = []
    for item in source:
        if type(item) in _LEAVES:
            copy.append(item if leaf is None else leaf(item))
        else:
            stack.append((copy, len(copy), item, None))
            copy.append(None)
    return copy


def _copy_object_or_collection(
    source: Any,
    stack: list[_Frame],
    known: dict[str, bool],
    judge: Callable[[str], bool],
    leaf: Leaf | None,
) -> Any:
    if type(source) not in _LEAVES and not isinstance(source, type):
        if isinstance(source, Mapping):
            items = cast("Mapping[Any, Any]", source).items()
            return _copy_mapping_masked(items, stack, known, judge, leaf)
        if (names := _find_model_field_names(source)) is not None:
            fields = [(name, getattr(source, name)) for name in names if hasattr(source, name)]
            return _copy_mapping_masked(fields, stack, known, judge, leaf)
        if isinstance(source, (list, tuple, deque, AbstractSet)):
            return _copy_sequence(cast("Iterable[Any]", source), stack, leaf)
    return source if leaf is None else leaf(source)


def _is_sensitive_key(key: object, judge: Callable[[str], bool]) -> bool:
    if isinstance(key, str):
        return judge(key)
    return isinstance(key, bytes) and judge(key.decode("utf-8", "replace"))


def _find_model_field_names(source: Any) -> Iterable[str] | None:
    kind = _kind(source)
    if hasattr(kind, "__dataclass_fields__"):
        return _list_dataclass_fields(kind)
    if hasattr(kind, "__struct_fields__"):  # msgspec
        return kind.__struct_fields__
    if hasattr(kind, "__pydantic_validator__"):
        return [*source.__dict__, *(source.__pydantic_extra__ or ())]
    return getattr(kind, "_fields", None) if isinstance(source, tuple) else None


def _list_dataclass_fields(kind: Any) -> Iterable[str]:
    from dataclasses import fields  # already imported in a program that has dataclasses

    return [field.name for field in fields(kind)]


def _restore_collection_type(source: Any, copy: Any, leaf: Leaf | None) -> Any:
    kind = _kind(copy)
    if kind is not list or leaf is not None or type(source) is list:
        return copy
    if isinstance(source, tuple):
        return tuple(copy)
    if not isinstance(source, AbstractSet):
        return copy
    try:
        return frozenset(copy) if isinstance(source, frozenset) else set(copy)
    except TypeError:
        return copy
