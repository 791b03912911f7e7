"""Hostile text through every public argument: the statement stays the same, or there is none.

The bulk is made by a seeded generator, since a case costs less than choosing it otherwise would.
The number of cases is TREEFOLD_INJECTION_CASES (20,000 unless set); for the long run:

    TREEFOLD_INJECTION_CASES=1000000 python -m pytest packages/orm/tests/test_injection.py
"""

from __future__ import annotations

import base64
import json
import os
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from orm_models import Author, Everything, Person, Post

from treefold_orm import (
    CTE,
    Case,
    Coalesce,
    Concat,
    Count,
    Exists,
    Extract,
    F,
    Func,
    JSONObject,
    Lag,
    LPad,
    Model,
    OrderBy,
    ORMError,
    OuterRef,
    Position,
    Prefetch,
    Q,
    Rank,
    Replace,
    RowRange,
    SearchIndex,
    SearchQuery,
    SearchRank,
    SearchVector,
    StringAgg,
    Subquery,
    Sum,
    Trunc,
    Value,
    When,
    Window,
    any_of,
    fields,
)
from treefold_orm._base.names import quote
from treefold_orm._building.latest_by import order_by_time
from treefold_orm._compile.aggregate_query import build_aggregate_plan
from treefold_orm._compile.plans import build_count_plan, build_exists_plan, build_rows_plan
from treefold_orm._compile.writes import build_delete_plan, build_update_plan
from treefold_orm._dialects.dialect import Dialect
from treefold_orm._dialects.postgres import Postgres
from treefold_orm._dialects.sqlite import SQLite
from treefold_orm._operations import paging
from treefold_orm._schema.constants import literal
from treefold_orm._schema.ddl import statements
from treefold_orm._schema.schema_search import CreateSearchIndex, SearchDef
from treefold_orm._search.search_index import build_search_index_name, list_search_indexes

CASES = int(os.environ.get("TREEFOLD_INJECTION_CASES", "20000"))
DIALECTS: tuple[Dialect, ...] = (SQLite(), Postgres())
PIECES = [
    "'",
    '"',
    ";",
    "--",
    "/*",
    "*/",
    "\\",
    "%",
    "_",
    "$1",
    "?",
    "{}",
    "{0}",
    "}",
    ")",
    "(",
    " OR 1=1",
    " UNION SELECT ",
    "\0",
    "\n",
    "\x1a",
    "a",
    "id",
    "name",
    "author",
    "author__name",
    "__",
    "__in",
    "__contains",
    "password",
    "::text",
    "$.a",
    "[0]",
    "#>",
    "->",
    "'||'",
    "é",
    "\u2028",
    "\ud800",
    "DROP TABLE author",
    "pk",
    "-",
    ".",
    ",",
    "`",
    "E'\\''",
    "$$",
    "1",
    "t0",
    "null",
    "\uff07",
]


def rows(query: Any, dialect: Dialect) -> str:
    """The text of a query's SELECT."""
    key, params = query._build_key_and_params()
    return build_rows_plan(dialect, key, given=len(params)).sql


def of(build: Callable[[str], Any]) -> Callable[[str, Dialect], str]:
    """A target that compiles the query built from a text."""
    return lambda text, dialect: rows(build(text), dialect)


def updated(text: str, dialect: Dialect) -> str:
    """The text of an UPDATE with a value."""
    query = Author.objects.filter(name=text)
    scope = query._make_scope()
    field = Author._meta.fields["name"]
    node = scope.add_param(field.coerce(text), field)
    return build_update_plan(dialect, query._key, ((field, node),), given=len(scope.params)).sql


def aggregated(text: str, dialect: Dialect) -> str:
    """The text of an aggregate with a condition."""
    query = Author.objects.filter(name=text)
    scope = query._make_scope()
    node = Count("posts", filter=Q(posts__title=text)).resolve(scope)
    return build_aggregate_plan(dialect, query._key, (("n", node),), given=len(scope.params)).sql


class Dashed(Func):
    """A function of the application's own."""

    template = "replace({}, {}, '-')"
    output_field = fields.TextField()


def paged(text: str, dialect: Dialect) -> str:
    """The text of a page whose cursor holds a value, or is one."""
    mark = paging._find_page_order(Author.objects.order_by("name")).digest
    made = base64.urlsafe_b64encode(json.dumps([mark, text, 5]).encode()).decode().rstrip("=")
    return cursor(made, dialect)


def cursor(text: str, dialect: Dialect) -> str:
    """The text of a page whose cursor is made up."""
    query = Author.objects.order_by("name")
    order = paging._find_page_order(query)
    values = paging._decode_cursor(query, order, text)
    (part,) = paging._split_beyond_cursor(query, order, values, backwards=False)
    return rows(part, dialect)


class Essay(Model):
    """Has a full text search."""

    title = fields.CharField(max_length=60)
    body = fields.TextField()
    password = fields.TextField()

    class Meta:
        indexes = (SearchIndex(["title", "body"], config="english", weights="AB"),)


ESSAY = SearchVector("title", "body")


def below(start: str = "x", follow: str = "staff", **options: Any) -> Any:
    """The rows of a recursive CTE."""
    return CTE.recursive(Person.objects.filter(name=start), follow, **options).objects


def totals(title: str = "x", name: str = "n") -> Any:
    """A CTE of values."""
    return CTE(Post.objects.filter(title=title).values("author").annotate(**{name: Count("id")}))


def indexed(dialect: Dialect, config: str) -> str:
    """The text that a configuration's name becomes part of."""
    made = SearchIndex(["title"], config=config)
    search = SearchDef("ix", "essay", "id", made.fields, made.config)
    return statements(CreateSearchIndex(search), dialect)[0].replace('"ix"', '"essay"')


VALUES: dict[str, Callable[[str, Dialect], str]] = {
    "exact": of(lambda t: Author.objects.filter(name=t)),
    "contains": of(lambda t: Author.objects.filter(name__contains=t)),
    "icontains": of(lambda t: Author.objects.exclude(name__icontains=t)),
    "startswith": of(lambda t: Author.objects.filter(name__startswith=t)),
    "in": of(lambda t: Author.objects.filter(name__in=[t, t])),
    "related": of(lambda t: Author.objects.filter(posts__title=t, posts__body__endswith=t)),
    "json value": of(lambda t: Everything.objects.filter(data__a=t)),
    "json document": of(lambda t: Everything.objects.filter(data={"a": t})),
    "json key asked for": of(lambda t: Everything.objects.filter(data__has_key=t)),
    "json keys asked for": of(
        lambda t: Everything.objects.filter(data__a__has_keys=[t, t], data__has_any_keys=[t])
    ),
    "json list": of(lambda t: Everything.objects.filter(data__a__in=[t, {t: t}, 1])),
    "json item": of(lambda t: Everything.objects.filter(data__a__contains=t)),
    "json part": of(
        lambda t: Everything.objects.filter(data__contains={t: t}, data__a__contained_by=[t])
    ),
    "Value": of(lambda t: Author.objects.annotate(x=Value(t))),
    "Concat": of(lambda t: Author.objects.annotate(x=Concat("name", Value(t)))),
    "Replace": of(lambda t: Author.objects.annotate(x=Replace("name", t, t))),
    "StringAgg": of(
        lambda t: Author.objects.annotate(x=StringAgg("posts__title", t, default=Value(t)))
    ),
    "LPad": of(lambda t: Author.objects.annotate(x=LPad("name", 9, t))),
    "Position": of(lambda t: Author.objects.annotate(x=Position("name", t))),
    "JSONObject": of(lambda t: Author.objects.annotate(x=JSONObject(a=Value(t), b="name"))),
    "key of a JSONObject": of(lambda t: Author.objects.annotate(x=JSONObject(**{t: "name"}))),
    "Lag": of(lambda t: Post.objects.annotate(x=Window(Lag("title", default=Value(t))))),
    "in with expressions": of(lambda t: Author.objects.filter(name__in=[F("name"), t])),
    "Coalesce": of(lambda t: Author.objects.annotate(x=Coalesce("name", Value(t)))),
    "Case": of(
        lambda t: Author.objects.annotate(x=Case(When(name=t, then=Value(t)), default=Value(t)))
    ),
    "Subquery": of(
        lambda t: Author.objects.annotate(
            x=Subquery(Post.objects.filter(title=t).values("body")[:1])
        )
    ),
    "Exists": of(
        lambda t: Author.objects.filter(Exists(Post.objects.filter(title=t, author=OuterRef("pk"))))
    ),
    "any_of": of(lambda t: Author.objects.filter(any_of("posts", Q(title=t)))),
    "column": of(
        lambda t: Post.objects.filter((Post.title == t) | Post.author.to.name.contains(t))
    ),
    "Func": of(lambda t: Author.objects.annotate(x=Dashed("name", Value(t)))),
    "condition": of(lambda t: Author.objects.annotate(x=Q(name=t)).filter(x=True)),
    "filter on a window": of(
        lambda t: Post.objects.annotate(r=Window(Rank(), order_by=["id"])).filter(r=1, title=t)
    ),
    "distinct in groups": of(
        lambda t: Author.objects.values("age").annotate(
            n=Count("posts__views", distinct=True, filter=Q(posts__title=t))
        )
    ),
    "page": paged,
    "CTE": of(lambda t: Author.objects.filter(name=t).join(totals(t), author="pk").filter(n=1)),
    "rows of a CTE": of(
        lambda t: totals(t).objects.filter(author__in=totals(t).objects.values("author"))
    ),
    "recursive CTE": of(
        lambda t: below(
            t,
            depth="level",
            max_depth=3,
            where=Q(name__contains=t),
            carry={"path": (Concat("name", Value(t)), Concat("path", Value(t)))},
        ).filter(level=1, path__startswith=t)
    ),
    "search": of(lambda t: Essay.objects.filter(title__search=t)),
    "search for a phrase": of(
        lambda t: Essay.objects.exclude(ESSAY.matches(SearchQuery(t, kind="phrase")))
    ),
    "search engine": of(
        lambda t: Essay.objects.filter(ESSAY.matches(SearchQuery(t, kind="websearch")))
    ),
    "SearchRank": of(
        lambda t: Essay.objects.annotate(r=SearchRank(ESSAY, t)).filter(r__gt=0).order_by("-r")
    ),
    "assigned": updated,
    "aggregated": aggregated,
    "deleted": lambda t, d: build_delete_plan(d, Author.objects.filter(name=t)._key, given=1).sql,
    "counted": lambda t, d: build_count_plan(d, Author.objects.filter(name=t)._key, given=1).sql,
    "found": lambda t, d: build_exists_plan(d, Author.objects.filter(name=t)._key, given=1).sql,
}

NAMES: dict[str, Callable[[str, Dialect], str]] = {
    "lookup": of(lambda t: Author.objects.filter(**{t: "x"})),
    "lookup ending": of(lambda t: Author.objects.filter(**{f"name__{t}": "x"})),
    "lookup start": of(lambda t: Author.objects.filter(**{f"{t}__name": "x"})),
    "Q": of(lambda t: Author.objects.filter(~Q(**{t: "x"}))),
    "order_by": of(lambda t: Author.objects.order_by(t)),
    "values": of(lambda t: Author.objects.values(t)),
    "values_list": of(lambda t: Author.objects.values_list(t, named=True)),
    "annotation": of(lambda t: Author.objects.annotate(**{t: Count("posts")})),
    "F": of(lambda t: Author.objects.annotate(x=F(t))),
    "unnamed aggregate": of(lambda t: Author.objects.annotate(Count(t))),
    "order of StringAgg": of(
        lambda t: Author.objects.annotate(x=StringAgg("posts__title", ",", order_by=t))
    ),
    "exclude of a frame": of(
        lambda t: Post.objects.annotate(
            x=Window(Count("id"), frame=RowRange(exclude=t))  # pyright: ignore[reportArgumentType] - any text on purpose
        )
    ),
    "operand": of(lambda t: Author.objects.annotate(x=Concat("name", t))),
    "Count": of(lambda t: Author.objects.annotate(x=Count(t))),
    "Sum": of(lambda t: Author.objects.values("age").annotate(x=Sum(t))),
    "OuterRef": of(lambda t: Author.objects.filter(Exists(Post.objects.filter(title=OuterRef(t))))),
    "Func": of(lambda t: Author.objects.annotate(x=Dashed(t, "name"))),
    "cursor": cursor,
    "distinct": of(lambda t: Post.objects.distinct(t)),
    "latest": of(lambda t: order_by_time(Author.objects.all(), [t], latest=True)),
    "dates": of(lambda t: Everything.objects.dates(t, "year")),
    "dates unit": of(lambda t: Everything.objects.dates("day", t)),  # pyright: ignore[reportArgumentType] - any text on purpose
    "dates order": of(lambda t: Everything.objects.dates("day", "year", t)),  # pyright: ignore[reportArgumentType] - any text on purpose
    "only": of(lambda t: Author.objects.only(t)),
    "defer": of(lambda t: Author.objects.defer(t)),
    "select_related": of(lambda t: Post.objects.select_related(t)),
    "Prefetch": of(lambda t: Author.objects.prefetch_related(Prefetch(t))),
    "to_attr": of(lambda t: Author.objects.prefetch_related(Prefetch("posts", to_attr=t))),
    "any_of": of(lambda t: Author.objects.filter(any_of(t))),
    "Extract": of(lambda t: Everything.objects.annotate(x=Extract("moment", t))),  # pyright: ignore[reportArgumentType] - any text on purpose
    "Trunc": of(lambda t: Everything.objects.annotate(x=Trunc("moment", t))),  # pyright: ignore[reportArgumentType] - any text on purpose
    "frame": of(lambda t: Post.objects.annotate(x=Window(Count("id"), frame=t))),
    "nulls": of(lambda t: Author.objects.order_by(OrderBy(F("name"), descending=False, nulls=t))),
    "join": of(lambda t: Author.objects.join(totals(), **{t: "pk"})),
    "join on": of(lambda t: Author.objects.join(totals(), author=t)),
    "left_join": of(lambda t: Author.objects.left_join(totals(), **{t: t})),
    "column of a CTE": of(lambda t: Author.objects.join(totals(name=t), author="pk")),
    "lookup in a CTE": of(lambda t: totals().objects.filter(**{t: 1})),
    "values of a CTE": of(lambda t: totals().objects.values(t)),
    "order of a CTE": of(lambda t: totals().objects.order_by(t)),
    "follow": of(lambda t: below(follow=t)),
    "depth": of(lambda t: below(depth=t)),
    "carry": of(lambda t: below(carry={t: ("name", F(t))})),
    "carry from": of(lambda t: below(carry={"path": (t, t)})),
    "where": of(lambda t: below(where=Q(**{t: "x"}))),
    "SearchVector": of(lambda t: Essay.objects.filter(SearchVector(t, "title").matches("x"))),
    "SearchRank": of(lambda t: Essay.objects.annotate(r=SearchRank(SearchVector(t), "x"))),
    "kind of search": of(
        lambda t: Essay.objects.filter(title__search=SearchQuery("x", kind=t))  # pyright: ignore[reportArgumentType] - any text on purpose
    ),
    "config": lambda t, d: indexed(d, config=t),
    "partition": of(
        lambda t: Post.objects.annotate(x=Window(Count("id"), partition_by=[t], order_by=[t]))
    ),
}

# what a statement of this package may be made of, with quoted names and literals taken out
PLAIN = re.compile(r"[A-Za-z0-9_ ()*=<>|,.$?:\[\]+/%&@#!-]*", re.ASCII)
QUOTED = re.compile(r""""(?:[^"]|"")*"|'[^']*'""")
OWN = {f'"{build_search_index_name(list_search_indexes(Essay._meta)[0], Essay._meta)}"'} | {
    name
    for model in (Author, Post, Everything, Person, Essay)
    for meta in (
        model._meta,
        *(r.target for r in model._meta.relations.values()),
        *(r.through for r in model._meta.relations.values() if r.through),
    )
    for name in (meta.table, *(f.quoted for f in meta.columns))
}


def hostile(source: random.Random) -> str:
    """A text made of pieces that have a meaning to a parser."""
    text = "".join(source.choices(PIECES, k=source.randint(1, 5)))
    if source.random() < 0.2:
        text += "".join(chr(source.randrange(1, 0x2FF)) for _ in range(source.randint(1, 6)))
    return text


def only_own_words(sql: str) -> bool:
    """Return True if a statement holds names of the model and words of this package alone."""
    names = {found for found in QUOTED.findall(sql) if found.startswith('"')}
    return (
        names <= OWN
        and PLAIN.fullmatch(QUOTED.sub("", sql)) is not None
        and ";" not in sql
        and "--" not in sql
    )


def check_value(target: str, dialect: Dialect, text: str, wanted: str) -> None:
    """A value never changes the statement."""
    try:
        got = VALUES[target](text, dialect)
    except ORMError:
        return
    assert got == wanted, f"{target} on {dialect.name} with {text!r}"


def check_name(target: str, dialect: Dialect, text: str) -> None:
    """A name is one of the model's own, or there is no statement."""
    try:
        got = NAMES[target](text, dialect)
    except ORMError:
        return
    assert only_own_words(got), f"{target} on {dialect.name} with {text!r}: {got}"


@pytest.mark.parametrize("share", range(4))
def test_hostile_text_never_changes_a_statement(share: int) -> None:
    source = random.Random(20260101 + share)  # noqa: S311, RUF100 - the same cases in every run
    wanted = {(t, d.name): VALUES[t]("benign", d) for t in VALUES for d in DIALECTS}
    values, names = list(VALUES), list(NAMES)
    refused = pieces = 0
    for case in range(CASES // 4):
        text = hostile(source)
        dialect = DIALECTS[case // 16 & 1]
        kind = case % 16
        if kind < 6:
            target = values[source.randrange(len(values))]
            check_value(target, dialect, text, wanted[target, dialect.name])
        elif kind < 13:
            check_name(names[source.randrange(len(names))], dialect, text)
        else:
            pieces += 1
            refused += check_pieces(kind, dialect, text)
    assert 0 < refused < pieces / 2


def check_pieces(kind: int, dialect: Dialect, text: str) -> int:
    """JSON keys, quoted names and literals of schema statements."""
    try:
        if kind == 13:
            key = text.replace("__", "").strip("_") or "k"
            got = rows(Everything.objects.filter(**{f"data__{key}x": 5}), dialect)
            assert got == rows(Everything.objects.filter(data__k=5), dialect), repr(text)
        elif kind == 14:
            quoted = quote(text)
            assert re.fullmatch(r'"(?:[^"]|"")*"', quoted), repr(text)
            assert quoted[1:-1].replace('""', '"') == text
        else:
            written = literal(text, dialect)
            assert re.fullmatch(r"'(?:[^']|'')*'", written), repr(text)
    except ORMError:
        return 1
    return 0


def test_the_benign_statements_pass_the_same_check() -> None:
    for dialect in DIALECTS:
        for target, build in VALUES.items():
            assert only_own_words(build("benign", dialect)), target


@settings(max_examples=300, deadline=None)
@given(
    st.text(min_size=1, max_size=30),
    st.sampled_from(sorted(VALUES)),
    st.sampled_from(sorted(NAMES)),
    st.booleans(),
)
def test_any_text_at_all_never_changes_a_statement(
    text: str, value: str, name: str, first: bool
) -> None:
    dialect = DIALECTS[first]
    check_value(value, dialect, text, VALUES[value]("benign", dialect))
    check_name(name, dialect, text)


@settings(max_examples=100, deadline=None)
@given(st.text(min_size=1, max_size=63), st.text(min_size=1, max_size=63))
def test_models_with_any_names_compile_to_quoted_names_only(table: str, column: str) -> None:
    try:
        model = type(
            "Odd",
            (Model,),
            {
                "__module__": __name__,
                "value": fields.TextField(db_column=column),
                "Meta": type("Meta", (), {"table": table}),
            },
        )
    except ORMError:
        return
    for dialect in DIALECTS:
        text = rows(model.objects.filter(value="x"), dialect)
        assert PLAIN.fullmatch(QUOTED.sub("", text)) is not None
