"""Lookups into JSON documents: the same rows on both databases and in both halves."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from orm_models import Everything

from treefold_orm import F, FieldError, FieldValueError, FilterSet, Q, close_all, configure
from treefold_orm._runtime.connections import _databases

# -- one table of documents, many questions -------------------------------------------------------

ODD = "k'\"y.[0]$\\é\n"
DOCUMENTS: list[Any] = [
    {"a": 1},  # 0
    {"a": 1.0, "b": 2},
    {"a": "1"},
    {"a": True},
    {"a": False},
    {"a": None},  # 5
    {"a": {"b": 5, "c": {"d": "x"}}},
    {"a": [7, 8, "x", None, {"b": 5}]},
    {"a": "Xylophone"},
    {"a": "100% _sure_\\"},
    {"a": ""},  # 10
    {"a": -3.5},
    {"a": []},
    {"a": {}},
    {"c": 0},
    None,  # 15
    {ODD: {ODD: "Ω"}, "": 3, " ": 4, "01": 5, "-1": 6},
    "text of its own",
    12,
    [1, "x", [2, 3]],
    True,  # 20
    {"a": 9007199254740993, "b": 0.1},
    {"a": "true"},
    {"a": "null"},
    {"a": "rue"},
    {"a": [[1, 2], [3]]},  # 25
    {"a": {"b": [1, 2.0, {"c": None}]}},
]

QUESTIONS: list[tuple[dict[str, Any], list[int]]] = [
    # equality tells the types apart and numbers by their value
    ({"data__a": 1}, [0, 1]),
    ({"data__a": 1.0}, [0, 1]),
    ({"data__a": "1"}, [2]),
    ({"data__a": True}, [3]),
    ({"data__a": False}, [4]),
    ({"data__a": None}, [5]),
    ({"data__a": "null"}, [23]),
    ({"data__a": 9007199254740993}, [21]),
    ({"data__a": 9007199254740992}, []),
    ({"data__b": 0.1}, [21]),
    ({"data__a": {"b": 5, "c": {"d": "x"}}}, [6]),
    ({"data__a": {"c": {"d": "x"}, "b": 5.0}}, [6]),
    ({"data__a": []}, [12]),
    ({"data__a": {}}, [13]),
    ({"data__a": [7, 8.0, "x", None, {"b": 5}]}, [7]),
    ({"data": {"a": 1}}, [0]),
    ({"data": {"b": 2, "a": 1}}, [1]),
    ({"data": 12}, [18]),
    ({"data": 12.0}, [18]),
    ({"data": "text of its own"}, [17]),
    ({"data": True}, [20]),
    ({"data": None}, [15]),
    # missing is not null
    ({"data__isnull": True}, [15]),
    ({"data__a__isnull": True}, [14, 15, 16, 17, 18, 19, 20]),
    ({"data__a__isnull": False, "data__a__b__isnull": False}, [6, 26]),
    ({"data__c__isnull": False}, [14]),
    # order, among numbers and among texts
    ({"data__a__gt": 1}, [21]),
    ({"data__a__gte": 1}, [0, 1, 21]),
    ({"data__a__lt": 0}, [11]),
    ({"data__a__lte": 1.0}, [0, 1, 11]),
    ({"data__a__gt": "X"}, [8, 22, 23, 24]),
    ({"data__a__lt": "2"}, [2, 9, 10]),
    ({"data__a__range": (-4, 1)}, [0, 1, 11]),
    ({"data__a__range": ["n", "s"]}, [23, 24]),
    ({"data__gt": 11}, [18]),
    ({"data__range": (12, 12)}, [18]),
    # one of several
    ({"data__a__in": [1, "1", True]}, [0, 1, 2, 3]),
    ({"data__a__in": ["true", "null", "rue"]}, [22, 23, 24]),
    ({"data__a__in": [True]}, [3]),
    ({"data__a__in": [None, []]}, [5, 12]),
    ({"data__a__in": [{"c": {"d": "x"}, "b": 5.0}, -3.5]}, [6, 11]),
    ({"data__a__in": []}, []),
    ({"data__in": [12, "text of its own", {"c": 0}]}, [14, 17, 18]),
    # text
    ({"data__a__contains": "ylo"}, [8]),
    ({"data__a__contains": "YLO"}, []),
    ({"data__a__icontains": "YLO"}, [8]),
    ({"data__a__contains": "%"}, [9]),
    ({"data__a__contains": "_"}, [9]),
    ({"data__a__endswith": "\\"}, [9]),
    ({"data__a__startswith": "1"}, [2, 9]),
    ({"data__a__istartswith": "xY"}, [8]),
    ({"data__a__iendswith": "PHONE"}, [8]),
    ({"data__a__iexact": "XYLOPHONE"}, [8]),
    ({"data__contains": "of its"}, [17]),
    # a text contains a text, a list an item, and structures what they have
    ({"data__a__contains": "x"}, [7]),
    ({"data__contains": "x"}, [17, 19]),
    ({"data__a__contains": 7}, [7]),
    ({"data__a__contains": 1}, [0, 1]),
    ({"data__a__contains": [8, 7]}, [7]),
    ({"data__a__contains": [{"b": 5}]}, [7]),
    ({"data__a__contains": {"b": 5}}, [6]),
    ({"data__a__contains": [[2]]}, [25]),
    ({"data__a__contains": [2]}, []),
    ({"data__a__contains": {"b": [2, {"c": None}]}}, [26]),
    ({"data__a__contains": [None]}, [7]),
    ({"data__a__contains": True}, [3]),
    ({"data__a__contains": {}}, [6, 13, 26]),
    ({"data__a__contains": []}, [7, 12, 25]),
    ({"data__contains": {"a": {"c": {}}}}, [6]),
    ({"data__contains": {"a": 1.0}}, [0, 1]),
    ({"data__contains": [[3]]}, [19]),
    ({"data__a__contained_by": [1, "1", {}]}, [0, 1, 2, 12]),
    ({"data__a__contained_by": {"b": 5, "c": {"d": "x", "e": 1}}}, [6, 13]),
    ({"data__a__contained_by": "1"}, [2]),
    ({"data__contained_by": {"a": 1, "c": 0}}, [0, 14]),
    # keys
    ({"data__has_key": "c"}, [14]),
    ({"data__has_key": ""}, [16]),
    ({"data__has_key": ODD}, [16]),
    ({"data__a__has_key": "b"}, [6, 26]),
    ({"data__a__has_key": "0"}, []),
    ({"data__has_key": "x"}, []),
    ({"data__has_keys": ["a", "b"]}, [1, 21]),
    ({"data__has_keys": [ODD, "01"]}, [16]),
    ({"data__a__has_keys": ["b", "c"]}, [6]),
    ({"data__a__has_keys": []}, [6, 13, 26]),
    ({"data__has_any_keys": ["b", "c", "zz"]}, [1, 14, 21]),
    ({"data__has_any_keys": []}, []),
    # paths
    ({"data__a__b": 5}, [6]),
    ({"data__a__b__gt": 4}, [6]),
    ({"data__a__c__d": "x"}, [6]),
    ({"data__a__0": 7}, [7]),
    ({"data__a__4__b": 5}, [7]),
    ({"data__a__1__0": 3}, [25]),
    ({"data__0": 1}, [19]),
    ({"data__a__-1__b": 5}, []),
    ({"data__a__+1": 8}, []),
    ({"data__a__01": 8}, []),
    ({"data__a__ 1": 8}, []),
    ({"data__a__9": 8}, []),
    ({"data__01": 5}, [16]),
    ({"data__-1": 6}, [16]),
    ({"data__ ": 4}, [16]),
    ({f"data__{ODD}__{ODD}": "Ω"}, [16]),
    ({f"data__{ODD}__isnull": False}, [16]),
    ({"data__a'b": 1}, []),
    ({'data__x"y': 1}, []),
    ({"data__a]b[$.": 1}, []),
]


async def seed(half: Any, documents: list[Any]) -> None:
    """One row for each document, numbered."""
    rows = [Everything(integer=place, data=value) for place, value in enumerate(documents)]
    await half(Everything.objects).bulk_create(rows)


async def asked(half: Any, *conditions: Any, **lookups: Any) -> list[int]:
    """The numbers of the rows that match."""
    query = Everything.objects.filter(*conditions, **lookups).order_by("integer")
    return [row.integer for row in await half.rows(query)]


async def test_the_same_rows_whatever_is_asked(db: Any, half: Any) -> None:
    await seed(half, DOCUMENTS)
    wrong: list[Any] = []
    for lookups, wanted in QUESTIONS:
        found = await asked(half, **lookups)
        others = await half.rows(Everything.objects.exclude(**lookups).order_by("integer"))
        rest = [place for place in range(len(DOCUMENTS)) if place not in wanted]
        if found != wanted or [row.integer for row in others] != rest:
            wrong.append((lookups, found, wanted))
    assert not wrong


async def test_json_lookups_combine_and_go_over_relations_and_aggregates(
    db: Any, half: Any
) -> None:
    await seed(half, DOCUMENTS)
    assert await asked(half, Q(data__a=1) & ~Q(data__b=2) | Q(data__a__in=["1"])) == [0, 2]
    assert await asked(half, Everything.data.in_([12])) == [18]
    assert await asked(half, Everything.data == {"a": 1}) == [0]
    assert await half(Everything.objects.filter(data__a__gt=0)).update(small=1) == 3
    assert await half(Everything.objects.filter(data__a__has_keys=["b"])).delete() == 2
    marked = Everything.objects.annotate(hit=Q(data__a__contains=[7])).filter(hit=True)
    assert [row.integer for row in await half.rows(marked)] == [7]


async def test_a_value_at_a_path_comes_back_as_it_was_written(db: Any, half: Any) -> None:
    values: list[Any] = [0.30000000000000004, 10**30, 1.0, 1, "é\"'", True, None, [1.5], {"k": {}}]
    await seed(half, [{ODD: {"01": value}} for value in values])
    query = Everything.objects.order_by("integer").values_list(f"data__{ODD}__01", flat=True)
    found = await half.rows(query)
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]


async def test_a_value_at_a_path_compares_as_an_annotation(db: Any, half: Any) -> None:
    await seed(half, DOCUMENTS)
    taken = Everything.objects.annotate(x=F("data__a")).order_by("integer")
    assert [row.integer for row in await half.rows(taken.filter(x=1))] == [0, 1]
    assert [row.integer for row in await half.rows(taken.filter(x={}))] == [13]
    assert [row.integer for row in await half.rows(taken.filter(x__gt=1))] == [
        row.integer for row in await half.rows(taken.filter(data__a__gt=1))
    ]
    with pytest.raises(FieldError, match="gt compares JSON numbers or text, not list"):
        taken.filter(x__gt=[1])


# -- refusals -------------------------------------------------------------------------------------

REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"data__a__gt": True}, FieldError, "compares JSON numbers or text, not bool"),
    ({"data__a__gt": [1]}, FieldError, "compares JSON numbers or text, not list"),
    ({"data__a__gt": float("nan")}, FieldValueError, "finite number"),
    ({"data__a__gt": None}, FieldError, "cannot compare with None: use isnull"),
    ({"data__a__range": (1, "2")}, FieldError, "two numbers or two texts"),
    ({"data__a__range": (1,)}, FieldError, "takes two values"),
    ({"data__a__range": 5}, FieldError, "takes a list, not int"),
    ({"data__a__in": "abc"}, FieldError, "takes a list, not str"),
    ({"data__a__in": [object()]}, FieldValueError, "takes plain JSON"),
    ({"data__a__in": {"a": 1}}, FieldError, "takes a list, not dict"),
    ({"data__a__icontains": 5}, FieldValueError, "data"),
    ({"data__a__contains": {1: 2}}, FieldValueError, "text keys only"),
    ({"data__a__contains": "a\0"}, FieldValueError, "NUL"),
    ({"data__a__contained_by": {1}}, FieldValueError, "takes plain JSON"),
    ({"data__has_key": 5}, FieldValueError, "data"),
    ({"data__has_key": "\0"}, FieldValueError, "NUL"),
    ({"data__has_keys": "ab"}, FieldError, "takes a list, not str"),
    ({"data__has_keys": ["a", 5]}, FieldValueError, "data"),
    ({"data__has_any_keys": {"a": 1}}, FieldError, "takes a list, not dict"),
    ({"data__a__isnull": 1}, FieldError, "takes True or False"),
    ({"data__a__regex": "x"}, FieldError, "does not work on JSON"),
    ({"data__a\0b": 1}, FieldError, "NUL"),
    ({"data__a\ud800": 1}, FieldError, "half a character"),
    ({"data" + "__a" * 33: 1}, FieldError, "at most 32 keys"),
    ({"data__a__has_key": F("char")}, FieldError, "takes plain values"),
    ({"data__in": F("integer")}, FieldError, "takes plain values"),
]


@pytest.mark.parametrize(("lookups", "error", "words"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_asked_is_refused_before_any_statement(
    lookups: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        Everything.objects.filter(**lookups)


async def test_the_deepest_path_and_the_largest_numbers_are_asked_for(db: Any, half: Any) -> None:
    document: Any = 5
    for _ in range(32):
        document = {"a": document}
    await seed(half, [document, {"a": 10**20}])
    assert await asked(half, **{"data" + "__a" * 32: 5}) == [0]
    assert await asked(half, data__a=10**20) == [1]
    assert await asked(half, data__a__range=(10**19, 10**21)) == [1]


async def test_a_filter_set_takes_lists_of_keys(db: Any, half: Any) -> None:
    class Asked(FilterSet):
        model = Everything
        fields = {"data": ("has_keys",), "data__a": ("exact", "in")}  # noqa: RUF012 - as in the README

    await seed(half, DOCUMENTS)
    for parameters, wanted in (
        ({"data__has_keys": "a,b"}, [1, 21]),
        ({"data__a": "1"}, [2]),
        ({"data__a__in": "1,rue"}, [2, 24]),
    ):
        query = Asked(parameters).apply(Everything.objects.order_by("integer"))
        assert [row.integer for row in await half.rows(query)] == wanted


# -- whatever the documents are -------------------------------------------------------------------

_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 1.0, -0.0, 1e300])
    | st.sampled_from(["", "a", "1", "é", "true", 'q"'])
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "1", 'q"']), inner, max_size=3)
    ),
    max_leaves=6,
)


_ASKED = ("", "__in", "__contains", "__contained_by", "__has_keys")


@pytest.fixture
def both(request: pytest.FixtureRequest, tmp_path: Path, admin: Any) -> Iterator[Any]:
    """Ask both databases the same questions about the same documents."""
    shutil.copy(request.getfixturevalue("sqlite_template"), tmp_path / "both.sqlite3")
    _databases.clear()
    configure("sqlite", str(tmp_path / "both.sqlite3"), alias="sqlite")
    options = {"search_path": request.getfixturevalue("postgres_tables")}
    configure("postgres", admin.dsn, alias="postgres", server_settings=options)

    def ask(documents: list[Any], values: list[Any]) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for alias in ("sqlite", "postgres"):
            rows = Everything.objects.using(alias).order_by("integer")
            rows.delete()
            rows.bulk_create([Everything(integer=i, data=d) for i, d in enumerate(documents)])
            found[alias] = [
                [(op, path, asked), [row.integer for row in rows.filter(**{path + op: asked})]]
                for path in ("data", "data__a", "data__0", "data__a__1")
                for op in _ASKED
                for value in values
                if (asked := fitting(op, value)) is not None
            ]
        return found

    yield ask
    close_all()
    _databases.clear()


def fitting(op: str, value: Any) -> Any:
    """A value that the lookup takes."""
    if op == "__in":
        return [value, 1]
    if op == "__has_keys":
        return list(cast("dict[str, Any]", value)) if isinstance(value, dict) else [str(value)]
    return value


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(_VALUES, min_size=4, max_size=12), st.lists(_VALUES, min_size=3, max_size=3))
def test_both_databases_find_the_same_documents(
    both: Any, documents: list[Any], values: list[Any]
) -> None:
    found = both(documents, values)
    assert found["sqlite"] == found["postgres"]
