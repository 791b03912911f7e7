"""Asks one engine for what roles of a value give: assignments, filters, sets, groups, orders."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, cast

from crossing import kinds
from crossing.cases_roles import Pair
from crossing.kinds import Kind
from crossing.oracle import Fault, Unsure
from crossing.runner import REFUSALS, Report, Wanted, described, same, wanted_of
from crossing.terms import Term, base_query, expression_of
from crossing.values import NAMES, ROWS, Cross
from treefold_orm import CTE, Count, DatabaseError, F


def tried(report: Report, label: str, ask: Callable[[], Any], *, unstated: bool) -> Any:
    """The answer, or None after noting what went wrong (in a list, to tell it from a NULL)."""
    try:
        return [ask()]
    except REFUSALS as error:
        if unstated:
            report.refused.add(label)
        else:
            report.fail(label, described(error))
    except Exception as error:  # noqa: BLE001, RUF100 - whatever it is, it is the finding
        report.fail(label, described(error))
    return None


def refused(report: Report, label: str, ask: Callable[[], Any]) -> None:
    """Check that a query is refused."""
    try:
        ask()
    except REFUSALS:
        return
    except Exception as error:  # noqa: BLE001, RUF100 - whatever it is, it is the finding
        report.fail(label, f"{described(error)}, not FieldError")
        return
    report.fail(label, "not refused")


def equal_lists(found: list[Any], wanted: list[Any], kind: Kind) -> bool:
    """Return True if two bags have the same values."""
    left = [*wanted]
    for value in found:
        place = next((i for i, other in enumerate(left) if same(value, other, (kind,))), None)
        if place is None:
            return False
        del left[place]
    return not left


def hashable(value: Any) -> Any:
    """A value to count by."""
    if not isinstance(value, dict):
        return value
    document = cast("dict[str, Any]", value)
    plain = {k: float(v) if type(v) in {int, float} else v for k, v in document.items()}
    return json.dumps(plain, sort_keys=True)


# -- assignments ----------------------------------------------------------------------------------


def assign(report: Report, alias: str, terms: Iterable[Term]) -> None:
    """Check updates."""
    groups: dict[tuple[int, ...], list[tuple[Term, Wanted]]] = {}
    for term in terms:
        report.cells += 1
        if term.kind is None:
            refused(report, term.label, lambda t=term: write(alias, [t], [*ROWS]))
            continue
        wanted = wanted_of(term, report.engine)
        groups.setdefault((*wanted.values,), []).append((term, wanted))
        for key in wanted.faults[:1]:
            _faulty(report, alias, term, key)
    for keys, members in groups.items():
        for batch in by_target(members):
            _assigned(report, alias, keys, batch)


def by_target(members: list[tuple[Term, Wanted]]) -> Iterable[list[tuple[Term, Wanted]]]:
    left = members
    while left:
        batch: dict[str, tuple[Term, Wanted]] = {}
        later: list[tuple[Term, Wanted]] = []
        for member in left:
            if member[0].name in batch:
                later.append(member)
            else:
                batch[member[0].name] = member
        yield [*batch.values()]
        left = later


def write(alias: str, terms: list[Term], keys: list[int]) -> dict[int, Any]:
    """Update columns of some rows; return what they hold then, by key."""
    rows: Any = Cross.objects.using(alias).filter(id__in=keys)
    rows.update(**{f"to_{name}": None for name in NAMES})
    query = base_query(alias, {need for term in terms for need in term.needs})
    values = {term.name: expression_of(term) for term in terms}
    changed = query.filter(id__in=keys).update(**values)
    assert changed == len(keys)
    return {row[0]: row[1:] for row in rows.values_list("id", *values)}


def _assigned(
    report: Report, alias: str, keys: tuple[int, ...], batch: list[tuple[Term, Wanted]]
) -> None:
    if not keys:
        return
    terms = [term for term, _ in batch]
    try:
        found = write(alias, terms, [*keys])
    except Exception as error:  # noqa: BLE001, RUF100 - whatever it is, it is the finding
        if len(batch) > 1:
            middle = len(batch) // 2
            _assigned(report, alias, keys, batch[:middle])
            _assigned(report, alias, keys, batch[middle:])
        elif batch[0][0].unstated and isinstance(error, REFUSALS):
            report.refused.add(batch[0][0].label)
        else:
            report.fail(batch[0][0].label, described(error))
        return
    for place, (term, wanted) in enumerate(batch):
        assert term.kind is not None
        for key in keys:
            value = found[key][place]
            if not same(value, wanted.values[key], (term.kind,)):
                report.fail(term.label, f"row {key}: {value!r}, not {wanted.values[key]!r}")
                break


def _faulty(report: Report, alias: str, term: Term, key: int) -> None:
    try:
        value = write(alias, [term], [key])[key][0]
    except DatabaseError:
        return
    except Exception as error:  # noqa: BLE001, RUF100 - whatever it is, it is the finding
        if not (term.unstated and isinstance(error, REFUSALS)):
            report.fail(term.label, f"row {key}: {described(error)}, not DatabaseError")
        return
    report.fail(term.label, f"row {key}: {value!r}, not DatabaseError")


# -- filters --------------------------------------------------------------------------------------


def filters(report: Report, alias: str, terms: Iterable[Term]) -> None:
    """Check conditions in `filter` and `exclude`; both together are all rows."""
    for term in terms:
        wanted = wanted_of(term, report.engine)
        if wanted.faults or wanted.unsure or term.inner:
            continue
        report.cells += 1
        met = [key for key in ROWS if wanted.values[key]]
        for name, keys in (("filter", met), ("exclude", [k for k in ROWS if k not in met])):

            def ask(name: str = name, term: Term = term) -> list[int]:
                query = base_query(alias, {*term.needs})
                found = getattr(query, name)(term.build()).values_list("id", flat=True)
                return sorted(found)

            answer = tried(report, f"{name} {term.label}", ask, unstated=term.unstated)
            if answer is not None and answer[0] != keys:
                report.fail(f"{name} {term.label}", f"rows {answer[0]}, not {keys}")


# -- sets and joins -------------------------------------------------------------------------------


def _sides(pair: Pair, engine: str) -> tuple[dict[int, Any], dict[int, Any]]:
    made: tuple[dict[int, Any], dict[int, Any]] = ({}, {})
    for right, key in ((right, key) for right in (False, True) for key in ROWS):
        try:
            made[right][key] = pair.side(right, ROWS[key], engine)
        except (Fault, Unsure):
            continue
    return made


def _query(alias: str, term: Term, keys: Iterable[int]) -> Any:
    query = base_query(alias, {*term.needs}).filter(id__in=[*keys])
    return query.annotate(x=expression_of(term)).values_list("x", flat=True)


def _combined(op: str, left: list[Any], right: list[Any]) -> list[Any]:
    there = {hashable(value): value for value in left}
    other = {hashable(value): value for value in right}
    match op:
        case "union":
            return [*{**other, **there}.values()]
        case "union all":
            return [*left, *right]
        case "intersection":
            return [value for key, value in there.items() if key in other]
        case _:
            return [value for key, value in there.items() if key not in other]


def sets(report: Report, alias: str, pairs: Iterable[Pair]) -> None:
    """Check set operations of two queries."""
    for pair in pairs:
        ops = ("union", "union all", "intersection", "difference")
        for op in ops if pair.kind is not None else ops[:1]:
            report.cells += 1
            label = f"{op} {pair.label}"

            def ask(op: str = op, pair: Pair = pair, keys: Any = (ROWS, ROWS)) -> list[Any]:
                left = _query(alias, pair.left, keys[0])
                right = _query(alias, pair.right, keys[1])
                name, _, rest = op.partition(" ")
                options = {"all": True} if rest else {}
                return [*getattr(left, name)(right, **options)]

            if pair.kind is None:
                refused(report, label, ask)
                continue
            sides = _sides(pair, report.engine)
            unstated = pair.unstated or (pair.kind.family == "json" and op != "union all")
            answer = tried(report, label, lambda a=ask, k=sides: a(keys=k), unstated=unstated)
            wanted = _combined(op, [*sides[0].values()], [*sides[1].values()])
            if answer is not None and not equal_lists(answer[0], wanted, pair.kind):
                report.fail(label, f"{answer[0]!r}, not {wanted!r}")


def joins(report: Report, alias: str, pairs: Iterable[Pair]) -> None:
    """Check joins of a CTE on values of two types."""
    for pair in pairs:
        if pair.left.form in {"note", "win", "agg"}:
            continue
        report.cells += 1
        label = f"join {pair.label}"
        sides: Any = ({}, {}) if pair.kind is None else _sides(pair, report.engine)

        def ask(pair: Pair = pair, keys: Any = sides) -> list[Any]:
            inner = base_query(alias, {*pair.right.needs}).filter(id__in=[*keys[1]])
            cte = CTE(inner.values(partner=F("id"), on=expression_of(pair.right)))
            query: Any = Cross.objects.using(alias).filter(id__in=[*keys[0]])
            rows = query.join(cte, on=expression_of(pair.left)).values_list("id", "partner")
            return sorted(rows)

        if pair.kind is None:
            refused(report, label, ask)
            continue
        unstated = pair.unstated or pair.kind.family in kinds.UNORDERED
        answer = tried(report, label, ask, unstated=unstated)
        wanted = sorted(
            (one, two)
            for one, left in sides[0].items()
            for two, right in sides[1].items()
            if left is not None and left == right
        )
        if answer is not None and answer[0] != wanted:
            report.fail(label, f"{answer[0]!r}, not {wanted!r}")


# -- groups and orders ----------------------------------------------------------------------------


def groups(report: Report, alias: str, terms: Iterable[Term]) -> None:
    """Check GROUP BY, DISTINCT and ORDER BY."""
    for term in terms:
        assert term.kind is not None
        report.cells += 1
        wanted = wanted_of(term, report.engine)
        keys = [*wanted.values]

        def query(term: Term = term, keys: list[int] = keys) -> Any:
            made = base_query(alias, {*term.needs}).filter(id__in=keys)
            return made.annotate(x=expression_of(term))

        unstated = term.unstated or term.kind.family == "json"
        counted = tried(
            report,
            f"group by {term.label}",
            lambda q=query: [*q().values("x").annotate(n=Count("id")).values_list("x", "n")],
            unstated=unstated,
        )
        counts = Counter(hashable(value) for value in wanted.values.values())
        if counted is not None and {hashable(x): n for x, n in counted[0]} != counts:
            report.fail(f"group by {term.label}", f"{counted[0]!r}, not {dict(counts)!r}")
        distinct = tried(
            report,
            f"distinct {term.label}",
            lambda q=query: [*q().values_list("x", flat=True).distinct()],
            unstated=unstated,
        )
        if distinct is not None and {*map(hashable, distinct[0])} != {*counts}:
            report.fail(f"distinct {term.label}", f"{distinct[0]!r}, not {[*counts]!r}")
        if term.kind.family not in kinds.UNORDERED:
            _ordered(report, term, query, wanted.values)


def _ordered(report: Report, term: Term, query: Any, values: dict[int, Any]) -> None:
    there = [key for key in values if values[key] is not None]
    nulls = [key for key in values if values[key] is None]

    def of(key: int) -> Any:
        return getattr(values[key], "value", values[key])

    rising = [*sorted(there, key=lambda key: (of(key), key)), *nulls]
    falling = [*nulls, *sorted(there, key=of, reverse=True)]
    for name, wanted in (("x", rising), ("-x", falling)):
        label = f"order by {name} {term.label}"
        found = tried(
            report,
            label,
            lambda n=name: [*query().order_by(n, "id").values_list("id", flat=True)],
            unstated=term.unstated,
        )
        if found is not None and found[0] != wanted:
            report.fail(label, f"{found[0]!r}, not {wanted!r}")


def must_fail(
    report: Report, label: str, ask: Callable[[], list[Any]], *, unstated: bool = False
) -> None:
    """Check that a query fails with an error of the database, or is refused where it may be."""
    try:
        found = ask()
    except DatabaseError:
        return
    except Exception as error:  # noqa: BLE001, RUF100 - whatever it is, it is the finding
        if unstated and isinstance(error, REFUSALS):
            report.refused.add(label)
            return
        report.fail(label, f"{described(error)}, not DataError")
        return
    report.fail(label, f"{found!r}, not DataError")
