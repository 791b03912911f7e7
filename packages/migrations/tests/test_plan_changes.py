"""Each change of a table, applied to a database with rows: the catalog equals that of a table
created as it is after, and the rows have the values they should.
"""

from __future__ import annotations

from typing import Any

import pytest
from plan_cases import Case, one, shape
from plan_engines import Bench

from treefold_migrations._plan.between import PlannerHints
from treefold_orm import (
    CheckConstraint,
    ExclusionConstraint,
    Index,
    Lower,
    Q,
    Range,
    SearchIndex,
    UniqueConstraint,
    fields,
)
from treefold_orm.schema import TableShape

TEXT = {"name": fields.CharField(max_length=20)}
NAMES = [{"name": "'Ann'"}, {"name": "'Bob'"}, {"name": "'it''s'"}]
USER = shape("user", TEXT)


def post(key: Any, **options: Any) -> TableShape:
    return shape("post", {"title": fields.TextField(), "author": key}, **options)


CASES: dict[str, Case] = {
    "create_table": Case([USER], [USER, post(fields.ForeignKey("user"))], {"user": NAMES}),
    "drop_table": Case([USER, post(fields.ForeignKey("user"))], [USER], {"user": NAMES}),
    "rename_table": Case(
        [USER, post(fields.ForeignKey("user", related_name="+"))],
        [shape("person", TEXT), post(fields.ForeignKey("person", related_name="+"))],
        {"user": NAMES, "post": [{"title": "'a'", "author_id": "2"}]},
        {"person": ("name", [("Ann",), ("Bob",), ("it's",)]), "post": ("author_id", [(2,)])},
        answers=PlannerHints(tables={"person": "user"}),
    ),
    "rename_column": Case(
        [
            shape(
                "user",
                {**TEXT, "n": fields.IntegerField(unique=True, null=True)},
                indexes=(Index("name", "-n"),),
                constraints=(CheckConstraint(Q(n__lt=9) | Q(name="n"), name="few"),),
            )
        ],
        [
            shape(
                "user",
                {"label": TEXT["name"], "m": fields.IntegerField(unique=True, null=True)},
                indexes=(Index("label", "-m"),),
                constraints=(CheckConstraint(Q(m__lt=9) | Q(label="n"), name="few"),),
            )
        ],
        {"user": NAMES},
        {"user": ("label", [("Ann",), ("Bob",), ("it's",)])},
        answers=PlannerHints(fields={"user": {"label": "name", "m": "n"}}),
    ),
    "swap_columns": Case(
        [
            shape(
                "pair", {"a": fields.CharField(max_length=5), "b": fields.TextField(db_index=True)}
            )
        ],
        [
            shape(
                "pair", {"b": fields.CharField(max_length=5), "a": fields.TextField(db_index=True)}
            )
        ],
        {"pair": [{"a": "'x'", "b": "'y'"}]},
        {"pair": ("a", [("y",)])},
        answers=PlannerHints(fields={"pair": {"a": "b", "b": "a"}}),
    ),
    "rename_key": Case(
        [shape("user", TEXT), post(fields.ForeignKey("user"))],
        [
            TableShape("user", "User", {"number": fields.BigAutoField(primary_key=True), **TEXT}),
            post(fields.ForeignKey("user")),
        ],
        {"user": NAMES, "post": [{"title": "'a'", "author_id": "3"}]},
        {"user": ("number", [(1,), (2,), (3,)]), "post": ("author_id", [(3,)])},
        answers=PlannerHints(fields={"user": {"number": "id"}}),
    ),
    "add_nullable": Case(
        [USER],
        [shape("user", {**TEXT, "age": fields.IntegerField(null=True)})],
        {"user": NAMES},
        {"user": ("age", [(None,)] * 3)},
    ),
    "add_with_default": Case(
        [USER],
        [shape("user", {**TEXT, "age": fields.SmallIntegerField(db_default=7)})],
        {"user": NAMES},
        {"user": ("age", [(7,)] * 3)},
    ),
    "add_filled": Case(
        [USER],
        [shape("user", {**TEXT, "nick": fields.CharField(max_length=5)})],
        {"user": NAMES},
        {"user": ("nick", [("-",)] * 3)},
        answers=PlannerHints(fills={("user", "nick"): "'-'"}),
    ),
    "add_filled_by_expression": Case(
        [USER],
        [shape("user", {**TEXT, "nick": fields.CharField(max_length=20)})],
        {"user": NAMES},
        {"user": ("nick", [("ann",), ("bob",), ("it's",)])},
        answers=PlannerHints(fills={("user", "nick"): 'lower("name")'}),
    ),
    "add_to_empty": Case([USER], [shape("user", {**TEXT, "age": fields.IntegerField()})]),
    "add_reference": Case(
        [USER, shape("post", {"title": fields.TextField()})],
        [
            USER,
            post(
                fields.ForeignKey("user", "SET_NULL", null=True),
            ),
        ],
        {"user": NAMES, "post": [{"title": "'a'"}]},
        {"post": ("author_id", [(None,)])},
    ),
    "drop_reference": Case(
        [USER, post(fields.ForeignKey("user"))],
        [USER, shape("post", {"title": fields.TextField()})],
        {"user": NAMES, "post": [{"title": "'a'", "author_id": "1"}]},
        {"post": ("title", [("a",)])},
    ),
    "drop_column": Case(
        [USER], [shape("user", {"x": fields.TextField(null=True)})], {"user": NAMES}
    ),
    "drop_column_with_check": Case(
        [shape("user", {**TEXT, "age": fields.PositiveIntegerField(db_index=True, db_default=1)})],
        [USER],
        {"user": NAMES},
        {"user": ("name", [("Ann",), ("Bob",), ("it's",)])},
    ),
    "on_delete": Case(
        [USER, post(fields.ForeignKey("user"))],
        [USER, post(fields.ForeignKey("user", "CASCADE"))],
        {"user": NAMES, "post": [{"title": "'a'", "author_id": "1"}]},
        {"post": ("author_id", [(1,)])},
    ),
    "one_to_one": Case(
        [USER, post(fields.ForeignKey("user"))],
        [USER, post(fields.OneToOneField("user"))],
        {"user": NAMES, "post": [{"title": "'a'", "author_id": "1"}]},
        {"post": ("author_id", [(1,)])},
    ),
    "unique": one(fields.TextField(), fields.TextField(unique=True), ["'a'", "'b'"], ["a", "b"]),
    "not_unique": one(
        fields.TextField(unique=True), fields.TextField(), ["'a'", "'b'"], ["a", "b"]
    ),
    "index": one(fields.TextField(), fields.TextField(db_index=True), ["'a'"], ["a"]),
    "no_index": one(fields.TextField(db_index=True), fields.TextField(), ["'a'"], ["a"]),
    "allow_null": one(fields.TextField(), fields.TextField(null=True), ["'a'"], ["a"]),
    "require": one(fields.TextField(null=True), fields.TextField(), ["'a'"], ["a"]),
    "require_fill_values": one(
        fields.TextField(null=True),
        fields.TextField(),
        ["'a'", "NULL"],
        ["a", "?"],
        answers=PlannerHints(fills={("item", "v"): "'?'"}),
    ),
    "set_default": one(fields.IntegerField(), fields.IntegerField(db_default=5), ["1"], [1]),
    "drop_default": one(fields.IntegerField(db_default=5), fields.IntegerField(), ["1"], [1]),
    "constraints": Case(
        [shape("seat", {"row": fields.IntegerField(), "name": fields.CharField(max_length=9)})],
        [
            shape(
                "seat",
                {"row": fields.IntegerField(), "name": fields.CharField(max_length=9)},
                constraints=(
                    UniqueConstraint("row", "name"),
                    UniqueConstraint(Lower("name"), name="lowered", condition=Q(row__gt=1)),
                    UniqueConstraint("name", name="nulls", nulls_distinct=False),
                    CheckConstraint(Q(row__gte=1) & ~Q(name="it's"), name="sane"),
                ),
                indexes=(
                    Index("-row"),
                    Index(Lower("name").desc(), "row", name="both", condition=Q(row=1)),
                ),
            )
        ],
        {"seat": [{"row": "1", "name": "'a'"}, {"row": "2", "name": "'b'"}]},
        {"seat": ("name", [("a",), ("b",)])},
    ),
    "composite_key": Case(
        [
            TableShape(
                "link",
                "Link",
                {
                    "a": fields.IntegerField(),
                    "b": fields.IntegerField(),
                    "c": fields.IntegerField(null=True),
                },
                ("a", "b"),
            )
        ],
        [
            TableShape(
                "link",
                "Link",
                {
                    "a": fields.IntegerField(),
                    "b": fields.IntegerField(),
                    "c": fields.IntegerField(db_default=4),
                },
                ("a", "b", "c"),
            )
        ],
        {"link": [{"a": "1", "b": "2", "c": "3"}]},
        {"link": ("c", [(3,)])},
    ),
    "key_to_identity": Case(
        [TableShape("thing", "Thing", {"id": fields.IntegerField(primary_key=True), **TEXT})],
        [TableShape("thing", "Thing", {"id": fields.AutoField(), **TEXT})],
        {"thing": [{"id": "7", "name": "'a'"}]},
        {"thing": ("id", [(7,)])},
    ),
    "key_widened": Case(
        [
            TableShape("user", "User", {"id": fields.AutoField(), **TEXT}),
            post(fields.ForeignKey("user")),
        ],
        [USER, post(fields.ForeignKey("user"))],
        {"user": NAMES, "post": [{"title": "'a'", "author_id": "3"}]},
        {"post": ("author_id", [(3,)])},
    ),
    "key_to_text": Case(
        [
            TableShape("code", "Code", {"id": fields.IntegerField(primary_key=True)}),
            shape("use", {"code": fields.ForeignKey("code")}),
        ],
        [
            TableShape("code", "Code", {"id": fields.CharField(max_length=9, primary_key=True)}),
            shape("use", {"code": fields.ForeignKey("code")}),
        ],
        {"code": [{"id": "5"}], "use": [{"code_id": "5"}]},
        {"code": ("id", [("5",)]), "use": ("code_id", [("5",)])},
    ),
    "search": Case(
        [shape("doc", {"title": fields.TextField(), "body": fields.TextField()})],
        [
            shape(
                "doc",
                {"title": fields.TextField(), "body": fields.TextField()},
                indexes=(SearchIndex(["title", "body"], name="doc_words"),),
            )
        ],
        {"doc": [{"title": "'a'", "body": "'b c'"}]},
    ),
    "search_kept_in_rebuild": Case(
        [
            shape(
                "doc",
                {"title": fields.TextField(), "n": fields.TextField(null=True)},
                indexes=(SearchIndex(["title"]),),
            )
        ],
        [
            shape(
                "doc",
                {"title": fields.TextField(), "n": fields.TextField(unique=True, db_default="x")},
                indexes=(SearchIndex(["title"]),),
            )
        ],
        {"doc": [{"title": "'alpha'", "n": "'u'"}]},
    ),
    "search_renamed_table": Case(
        [shape("doc", {"title": fields.TextField()}, indexes=(SearchIndex(["title"]),))],
        [shape("page", {"title": fields.TextField()}, indexes=(SearchIndex(["title"]),))],
        {"doc": [{"title": "'alpha'"}]},
        {"page": ("title", [("alpha",)])},
        answers=PlannerHints(tables={"page": "doc"}),
    ),
    "exclusion": Case(
        [
            shape(
                "talk",
                {
                    "room": fields.IntegerField(),
                    "a": fields.DateTimeField(),
                    "b": fields.DateTimeField(),
                },
            )
        ],
        [
            shape(
                "talk",
                {
                    "room": fields.IntegerField(),
                    "a": fields.DateTimeField(),
                    "b": fields.DateTimeField(),
                },
                constraints=(
                    ExclusionConstraint(
                        [("room", "="), (Range("a", "b", "[]"), "&&")], name="apart"
                    ),
                    UniqueConstraint("room", name="late", deferrable="deferred"),
                ),
            )
        ],
        {"talk": [{"room": "1", "a": "'2024-01-01'", "b": "'2024-01-02'"}]},
        only="postgres",
    ),
    "arrays": one(
        fields.ArrayField(fields.IntegerField()),
        fields.ArrayField(fields.BigIntegerField()),
        ["'{1,2}'"],
        [[1, 2]],
        only="postgres",
    ),
}


PLACES = [
    pytest.param(engine, name, id=f"{engine}-{name}")
    for name, case in CASES.items()
    for engine in ("sqlite", "postgres")
    if case.only in ("", engine)
]


@pytest.mark.parametrize(("bench", "name"), PLACES, indirect=["bench"])
def test_a_change_ends_at_the_schema_after(bench: Bench, name: str) -> None:
    case = CASES[name]
    with bench.place():
        case.fill(bench)
        case.apply(bench)
        wanted = bench.expected(case.after)
        assert bench.catalog() == wanted
        for table, (column, rows) in case.expected.items():
            assert bench.rows(table, [column], case.key_of(table)) == rows
