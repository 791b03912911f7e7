"""Classes of values that do not change."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, ClassVar, TypeVar, dataclass_transform

N = TypeVar("N")


class Record:
    """Base of the classes that `frozen_record` makes: equal where class and parts are."""

    __slots__ = ()

    __match_args__: ClassVar[tuple[str, ...]] = ()  # the names of its parts, as in a dataclass
    _defaults: ClassVar[dict[str, Any]] = {}
    _parts: ClassVar[Any]

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be set: it does not change")

    def __reduce__(self) -> tuple[Any, ...]:
        return self.__class__, tuple([getattr(self, name) for name in self.__match_args__])

    def __eq__(self, other: object, /) -> bool:
        # exactly the same class: And, Or and UnsharedAnd have equal parts and mean something else
        if self.__class__ is not other.__class__:
            return NotImplemented
        return self._parts(self) == self._parts(other)

    def __hash__(self) -> int:
        return hash(self._parts(self))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
        return f"{type(self).__name__}({shown})"


@dataclass_transform(frozen_default=True)
def frozen_record(kind: type[N]) -> type[N]:
    """A frozen, slotted class with a parameter for each annotation.

    It is made in a tenth of the time that a dataclass takes, and there are many: all are made when
    the package is imported. A default belongs to all instances.
    """
    plain: Any = kind
    own = tuple(plain.__annotations__)  # its own alone, even if it has none
    names = (*plain.__match_args__, *own)
    defaults = {**plain._defaults, **{n: plain.__dict__[n] for n in own if n in plain.__dict__}}
    body = {k: v for k, v in plain.__dict__.items() if k not in {*own, "__dict__", "__weakref__"}}
    parts = attrgetter(*(names or ["__class__"]))
    body |= {"__slots__": own, "__match_args__": names, "_defaults": defaults, "_parts": parts}
    made: Any = type(plain.__name__, plain.__bases__, body)
    given = {f"d_{name}": value for name, value in defaults.items()}
    given |= {f"s_{name}": getattr(made, name).__set__ for name in names}
    signature = ", ".join(f"{n}=d_{n}" if n in defaults else n for n in names)
    lines = "".join(f"    s_{name}(self, {name})\n" for name in names) or "    pass"
    # slots are set by their descriptors, past __setattr__, which refuses
    exec(f"def __init__(self, {signature}):\n{lines}", given)  # noqa: S102 - names of this package
    made.__init__ = given["__init__"]
    return made


def copy_with_changes(original: N, **changes: Any) -> N:
    """The same record with other parts."""
    same: Any = original
    return same.__class__(
        **{name: getattr(original, name) for name in same.__match_args__} | changes
    )
