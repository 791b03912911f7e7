"""Reverse: one public name for a function and for an annotation.

`Reverse("name")` is the function of text that Django users know under this name. The annotation
`posts: Reverse["Post"]` tells type checkers of the way back over a relation, which needs none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from treefold_orm._fields.meta import Instance
from treefold_orm._functions.text import ReversedText

if TYPE_CHECKING:
    from treefold_orm._models.related import RelatedManager, RelatedSet

M = TypeVar("M", bound=Instance)


class Reverse(ReversedText, Generic[M]):
    """Text with its characters in the opposite order: `Reverse("name")`.

    As the annotation of a model's attribute it is the name of a way back over a relation, for type
    checkers: `posts: Reverse["Post"]`.
    """

    __slots__ = ()

    def __init__(self: Reverse[Any], expression: Any) -> None:
        super().__init__(expression)

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type[object]) -> RelatedSet[M]: ...
        @overload
        def __get__(self, instance: Instance, owner: type[object]) -> RelatedManager[M]: ...
        def __get__(self, instance: Instance | None, owner: type[object]) -> Any: ...
