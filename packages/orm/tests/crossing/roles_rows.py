"""Asks one engine for values of the other rows of a window, and for writes of single instances."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from crossing.cases_roles import SOME, Pair
from crossing.cases_windows import Windowed
from crossing.oracle import Fault, Unsure
from crossing.roles import by_target, must_fail, refused, tried
from crossing.runner import BATCH, REFUSALS, Report, Wanted, described, same, wanted_of
from crossing.terms import Term, base_query
from crossing.values import NAMES, ROWS, Cross
from treefold_orm import CTE, Window

# -- windows --------------------------------------------------------------------------------------


Rows = list[tuple[Windowed, list[Any]]]


def windows(report: Report, alias: str, cells: Iterable[Windowed]) -> None:
    """Check functions of the other rows of a window; cells of the same rows share a statement."""
    groups: dict[tuple[int, ...], Rows] = {}
    for cell in cells:
        report.cells += 1
        label = f"window {cell.label}"
        if cell.kind is None:
            refused(report, label, lambda c=cell: _windows(alias, SOME, [c]))
            continue
        keys = [key for key in SOME if key in wanted_of(cell.argument, report.engine).values]
        try:
            wanted = [cell.value(keys, place, report.engine) for place in range(len(keys))]
        except Fault:
            must_fail(report, label, lambda c=cell, k=keys: _windows(alias, k, [c]))
        except Unsure:
            continue
        else:
            groups.setdefault(tuple(keys), []).append((cell, wanted))
    for keys, members in groups.items():
        for start in range(0, len(members), BATCH):
            _check_windows(report, alias, keys, members[start : start + BATCH])


def _windows(alias: str, keys: Iterable[int], cells: list[Windowed]) -> list[tuple[Any, ...]]:
    needs = {need for cell in cells for need in cell.argument.needs}
    named = {f"c{i}": Window(cell.build(), **cell.options) for i, cell in enumerate(cells)}
    rows = base_query(alias, needs).filter(id__in=[*keys]).annotate(**named)
    return [*rows.order_by("id").values_list(*named)]


def _check_windows(report: Report, alias: str, keys: Iterable[int], members: Rows) -> None:
    try:
        rows = _windows(alias, keys, [cell for cell, _ in members])
    except Exception as error:  # noqa: BLE001, RUF100 - whatever it is, it is the finding
        if len(members) > 1:
            middle = len(members) // 2
            _check_windows(report, alias, keys, members[:middle])
            _check_windows(report, alias, keys, members[middle:])
            return
        cell = members[0][0]
        if cell.unstated and isinstance(error, REFUSALS):
            report.refused.add(f"window {cell.label}")
        else:
            report.fail(f"window {cell.label}", described(error))
        return
    for place, (cell, wanted) in enumerate(members):
        assert cell.kind is not None
        found = [row[place] for row in rows]
        if len(found) != len(wanted) or not all(
            same(one, two, (cell.kind,)) for one, two in zip(found, wanted, strict=True)
        ):
            report.fail(f"window {cell.label}", f"{found!r}, not {wanted!r}")


# -- recursive CTEs --------------------------------------------------------------------------------


def carries(report: Report, alias: str, pairs: Iterable[Pair]) -> None:
    """Check values that a recursive CTE carries: they start as one type and go on as another."""
    for pair in pairs:
        if not {pair.left.form, pair.right.form} <= {"column", "case"}:
            continue
        report.cells += 1
        label = f"carry {pair.label}"

        def ask(pair: Pair = pair) -> list[Any]:
            start: Any = Cross.objects.using(alias).filter(id=1)
            carry = {"carried": (pair.left.build(), pair.right.build())}
            walk = CTE.recursive(start, "below", max_depth=len(SOME) - 1, carry=carry)
            rows = walk.objects.order_by("id").values_list("carried", flat=True)
            return [*rows]

        if pair.kind is None:
            refused(report, label, ask)
            continue
        try:
            wanted = [pair.side(key > 1, ROWS[key], report.engine) for key in SOME]
        except Unsure:
            continue
        found = tried(report, label, ask, unstated=pair.unstated)
        if found is not None and not (
            len(found[0]) == len(wanted)
            and all(same(a, b, (pair.kind,)) for a, b in zip(found[0], wanted, strict=True))
        ):
            report.fail(label, f"{found[0]!r}, not {wanted!r}")


# -- writes of instances --------------------------------------------------------------------------


def _save(alias: str, keys: list[int], values: dict[str, Callable[[], Any]]) -> None:
    for instance in Cross.objects.using(alias).filter(id__in=keys):
        for name, build in values.items():
            setattr(instance, name, build())
        instance.save()


def _bulk_update(alias: str, keys: list[int], values: dict[str, Callable[[], Any]]) -> None:
    instances = [*Cross.objects.using(alias).filter(id__in=keys)]
    for instance, (name, build) in itertools.product(instances, values.items()):
        setattr(instance, name, build())
    Cross.objects.using(alias).bulk_update(instances, [*values])


def _update_or_create(alias: str, keys: list[int], values: dict[str, Callable[[], Any]]) -> None:
    for key in keys:
        given = {name: build() for name, build in values.items()}
        Cross.objects.using(alias).update_or_create(defaults=given, id=key)


WRITERS: dict[str, Any] = {
    "save": _save,
    "bulk_update": _bulk_update,
    "update_or_create": _update_or_create,
}


def writes(report: Report, alias: str, cells: Iterable[tuple[str, Term]]) -> None:
    """Check expressions given to single instances."""
    groups: dict[tuple[int, ...], list[tuple[Term, Wanted]]] = {}
    for _, term in cells:
        report.cells += len(WRITERS)
        wanted = wanted_of(term, report.engine, SOME)
        groups.setdefault((*wanted.values,), []).append((term, wanted))
    rows: Any = Cross.objects.using(alias)
    for keys, members in groups.items():
        for batch, (way, writer) in itertools.product(by_target(members), WRITERS.items()):
            rows.update(**{f"to_{name}": None for name in NAMES})
            values = {term.name: term.build for term, _ in batch}
            label = f"{way} {', '.join(term.label for term, _ in batch)}"
            made = tried(report, label, partial(writer, alias, [*keys], values), unstated=False)
            if made is None:
                continue
            found = {row[0]: row[1:] for row in rows.values_list("id", *values)}
            for (place, (term, wanted)), key in itertools.product(enumerate(batch), keys):
                assert term.kind is not None
                if not same(found[key][place], wanted.values[key], (term.kind,)):
                    wrong = f"row {key}: {found[key][place]!r}, not {wanted.values[key]!r}"
                    report.fail(f"{way} {term.label}", wrong)
                    break
