"""Strategies of hypothesis for types, definitions, routes and locks."""

from __future__ import annotations

import json
from datetime import date
from typing import TypeVar

from hypothesis import strategies as st

from treefold_contract import (
    KINDS,
    Answer,
    AnswerField,
    AnyType,
    Auth,
    Body,
    Choice,
    ChoiceValue,
    Definition,
    Deprecation,
    ForeignType,
    Input,
    Limit,
    Limits,
    ListType,
    Lock,
    MapType,
    Member,
    Message,
    Record,
    Reference,
    RouteFacts,
    Scalar,
    Segment,
    Settings,
    TupleType,
    TypeNode,
    UnionType,
    VersionFacts,
)

NAMES = st.sampled_from(["User", "Left", "Said", "user", "Größe", "User@v2"])
KEYS = st.one_of(
    st.sampled_from(["id", "order-line", "x y", "", '"', "1", "?", "a=b", "tag", "len", "\n"]),
    st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=4).map(
        lambda text: json.loads(json.dumps(text))
    ),
)
NUMBERS = st.one_of(st.integers(-9, 9), st.sampled_from([0.5, -1e-7, 1e22]))
LITERALS = st.one_of(
    st.text('aé"\\\n|.', max_size=3).map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.sampled_from(["1", "-2", "1.5", "true", "false"]),
)
LIMITS = st.builds(
    Limits,
    **{name: st.none() | NUMBERS for name in ("minimum", "maximum", "above", "below", "step")},
    min_length=st.none() | st.integers(0, 9),
    max_length=st.none() | st.integers(0, 9),
    pattern=st.sampled_from(["", "^a", '"', "\\d | x"]),
)
SCALARS = st.builds(
    Scalar,
    st.sampled_from(KINDS),
    st.sampled_from(["", "email", "uuid", "datetime-aware"]),
    LIMITS,
    st.booleans(),
)
CHOICES = st.builds(
    Choice,
    st.lists(
        st.builds(ChoiceValue, LITERALS, st.sampled_from(["", "ADMIN"])),
        min_size=1,
        max_size=3,
        unique_by=lambda value: value.literal,
    ).map(tuple),
    st.booleans(),
)
LEAVES: st.SearchStrategy[TypeNode] = st.one_of(
    st.just(AnyType()), st.builds(ForeignType, KEYS), SCALARS, CHOICES, st.builds(Reference, NAMES)
)


def extend(inner: st.SearchStrategy[TypeNode]) -> st.SearchStrategy[TypeNode]:
    counts = st.none() | st.integers(0, 5)
    options = st.lists(
        inner.filter(lambda each: not isinstance(each, (UnionType, Choice))),
        min_size=2,
        max_size=3,
        unique=True,
    ).map(tuple)
    return st.one_of(
        st.builds(ListType, inner, counts, counts, st.booleans()),
        st.builds(TupleType, st.lists(inner, max_size=3).map(tuple)),
        st.builds(MapType, inner, inner),
        st.builds(UnionType, options, st.booleans(), KEYS),
    )


TYPES: st.SearchStrategy[TypeNode] = st.recursive(LEAVES, extend, max_leaves=6)
DEFAULTS = st.sampled_from(["", "computed", "1", '"a = b"', "null", '["?"]'])
MEMBERS = st.builds(Member, KEYS, TYPES, st.booleans(), DEFAULTS)
DEFINITIONS: st.SearchStrategy[Definition] = st.one_of(
    TYPES,
    st.builds(
        Record,
        st.lists(MEMBERS, max_size=3, unique_by=lambda member: member.name).map(tuple),
        st.booleans(),
    ),
)
DATES = st.none() | st.dates(date(2026, 1, 1), date(2027, 1, 1))
DEPRECATIONS = st.builds(Deprecation, DATES, DATES, st.sampled_from(["", "v9"]))
SEGMENTS = st.one_of(
    st.builds(Segment, st.sampled_from(["user", "order-line", "a b", "é", "x%2Fy", "{x}"])),
    st.builds(Segment, st.sampled_from(["id", "name"]), st.just(True), TYPES),
)
STATUSES = st.sampled_from(["200", "204", "404", "default"])


T = TypeVar("T")


def few(each: st.SearchStrategy[T], most: int = 2) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(each, max_size=most, unique_by=repr).map(tuple)


INPUTS = st.builds(Input, st.just("query"), KEYS, TYPES, st.booleans(), DEFAULTS)
BODIES = st.builds(Body, st.just("json"), TYPES, st.booleans(), st.booleans())
ANSWERS = st.builds(
    Answer, STATUSES, st.just("json"), st.none() | TYPES, st.booleans(), st.just("/p") | KEYS
)
FIELD_PLACES = st.sampled_from(["header", "event"])
FIELDS = st.builds(AnswerField, STATUSES, FIELD_PLACES, KEYS, TYPES, st.booleans())
MESSAGES = st.builds(Message, st.just("in"), st.just("json"), TYPES)


@st.composite
def routes(draw: st.DrawFn, prefix: str) -> RouteFacts:
    segments = draw(st.lists(SEGMENTS, min_size=1, max_size=2, unique_by=lambda each: each.text))
    return RouteFacts(
        draw(st.sampled_from(["GET", "POST", "WEBSOCKET"])),
        (Segment(prefix), *segments),
        operation=draw(st.sampled_from(["", "listUsers", "list users"])),
        deprecation=draw(st.none() | DEPRECATIONS),
        auth=draw(few(st.builds(Auth, st.just("bearer"), st.just(("a", "b"))))),
        guards=draw(few(KEYS)),
        is_opaque=draw(st.booleans()),
        inputs=draw(few(INPUTS)),
        bodies=draw(few(BODIES, 1)),
        limits=draw(few(st.builds(Limit, st.just("body"), st.integers(0, 9)), 1)),
        answers=draw(few(ANSWERS)),
        fields=draw(few(FIELDS)),
        messages=draw(few(MESSAGES)),
        closes=draw(few(st.integers(4000, 4009))),
    )


@st.composite
def locks(draw: st.DrawFn) -> Lock:
    found = draw(
        st.lists(
            st.sampled_from(["status", "v1", "v2", "v10"]).flatmap(routes),
            max_size=5,
            unique_by=lambda route: route.key,
        )
    )
    return Lock(
        routes=tuple(found),
        versions=tuple(
            VersionFacts(name, deprecation=draw(st.none() | DEPRECATIONS))
            for name in ("v10", "v1", "v2")
        ),
        definitions=draw(st.dictionaries(NAMES, DEFINITIONS, max_size=2)),
        settings=Settings("v2", "problem", ("head",), ("/static", "/admin")),
    )
