"""Labels of choices, read from each form in which choices are declared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from treefold_orm._base.errors import ModelError

if TYPE_CHECKING:
    import enum

Choices: TypeAlias = "Sequence[Any] | Mapping[Any, Any] | type[enum.Enum]"


def collect_choice_labels(choices: Choices) -> dict[Any, str]:
    """Return the label of each value, groups of choices flattened."""
    pairs: Any = choices
    if isinstance(choices, type):
        pairs = getattr(choices, "choices", None)
        if pairs is None:
            raise ModelError(
                f"choices cannot be {choices.__name__}; derive it from TextChoices or "
                "IntegerChoices, or use an EnumField"
            )
    # a text is iterable, too: `choices="abc"` would be three letters
    if isinstance(choices, str) or not hasattr(pairs, "__iter__"):
        raise ModelError(
            f"choices must be values, pairs of value and label, or a mapping, got {choices!r}"
        )
    labels: dict[Any, str] = {}
    items: list[Any] = list(pairs.items() if hasattr(pairs, "items") else pairs)
    for item in items:
        if isinstance(item, (tuple, list)):
            value, label = cast("Sequence[Any]", item)
        else:
            value, label = item, getattr(item, "label", str(item))
        if isinstance(label, (tuple, list, Mapping)):  # a named group of choices
            labels.update(collect_choice_labels(cast("Choices", label)))
            continue
        try:
            labels[value] = str(label)
        except TypeError:
            raise ModelError(f"choices must be hashable values, got {value!r}") from None
    return labels
