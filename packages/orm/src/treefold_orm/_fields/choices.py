"""TextChoices and IntegerChoices: enum classes whose members have a label for people.

Members are plain text or plain integers to everything that reads them: they compare equal to their
values, and columns hold the values. Nothing here knows a field.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Self


class ChoicesType(enum.EnumType):
    """Class of the choices classes: attributes that concern all members at once."""

    def __new__(metacls, name: str, bases: Any, body: Any, **options: Any) -> Any:
        """Make the class; two members cannot have one value."""
        made: Any = super().__new__(metacls, name, bases, body, **options)
        return enum.unique(made)

    @property
    def choices(cls) -> list[tuple[Any, str]]:
        """Pairs of value and label, for a field's `choices`; `__empty__` is the label of None."""
        empty: str | None = cls.__dict__.get("__empty__")
        pairs = [] if empty is None else [(None, empty)]
        return [*pairs, *((member.value, member.label) for member in cls._list_members())]

    @property
    def values(cls) -> list[Any]:
        """The values, in order of definition."""
        return [value for value, _ in cls.choices]

    @property
    def labels(cls) -> list[str]:
        """The labels, in order of definition."""
        return [label for _, label in cls.choices]

    @property
    def names(cls) -> list[str]:
        """The names of the members, in order of definition."""
        return [member.name for member in cls._list_members()]

    def _list_members(cls) -> list[Any]:
        return list(cls)

    def __contains__(cls, value: object) -> bool:
        # before Python 3.12, `in` of an enum class raises TypeError for what is no member
        return any(value == member for member in cls._list_members())


class TextChoices(str, enum.ReprEnum, metaclass=ChoicesType):
    """Text with labels, for a field's `choices`.

        class Status(TextChoices):
            DRAFT = "d", "Draft"
            PUBLISHED = "p"  # its label is "Published"

    A `CharField(choices=Status.choices)` holds and gives plain text that equals the members, and
    its model has `get_<field>_display()`. `EnumField(Status)` gives members instead.
    """

    _value_: str
    _label: str | None
    if TYPE_CHECKING:

        @property
        def value(self) -> str: ...  # mypy takes it for Any

    def __new__(cls, value: str, label: str | None = None) -> Self:
        """Make a member of its value and label."""
        if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a class body is untyped
            raise TypeError(f"{cls.__name__} takes text, got {value!r}")
        made = str.__new__(cls, value)
        made._value_ = value
        made._label = label
        return made

    @property
    def label(self) -> str:
        """The label: as given, else the name in words."""
        return _format_label(self.name) if self._label is None else self._label

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[Any]) -> str:
        return name


class IntegerChoices(int, enum.ReprEnum, metaclass=ChoicesType):
    """Integers with labels, for a field's `choices`; see `TextChoices`."""

    _value_: int
    _label: str | None
    if TYPE_CHECKING:

        @property
        def value(self) -> int: ...  # mypy takes it for Any

    def __new__(cls, value: int, label: str | None = None) -> Self:
        """Make a member of its value and label."""
        if not isinstance(value, int):  # pyright: ignore[reportUnnecessaryIsInstance] - a class body is untyped
            raise TypeError(f"{cls.__name__} takes integers, got {value!r}")
        made = int.__new__(cls, value)
        made._value_ = value
        made._label = label
        return made

    @property
    def label(self) -> str:
        """The label: as given, else the name in words."""
        return _format_label(self.name) if self._label is None else self._label


def _format_label(name: str) -> str:
    return name.replace("_", " ").title()
