"""Tables of expressions: all of them computed over one row, in one statement."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from orm_models import Everything

from treefold_orm import Expression

Case = tuple[Expression, Any]


async def differences(half: Any, row: dict[str, Any], cases: Sequence[Case]) -> list[str]:
    """Compute each expression over one row of `Everything`; return those that are not as wanted."""
    made = await half(Everything.objects).create(**row)
    expressions = {f"x{place}": expression for place, (expression, _) in enumerate(cases)}
    query = Everything.objects.filter(pk=made.pk).values(**expressions)
    (found,) = await half.rows(query)
    lines: list[str] = []
    for place, (expression, wanted) in enumerate(cases):
        got = found[f"x{place}"]
        same = type(got) is type(wanted) or isinstance(got, uuid.UUID)  # asyncpg has its own
        if got != wanted or not same:
            lines.append(f"case {place} {type(expression).__name__}: {got!r} is not {wanted!r}")
    return lines
