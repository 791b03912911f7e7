"""`create_all` makes exactly what the records of the schema say: read back from the catalogs."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass, field
from typing import Any

import pytest

from treefold_orm import (
    CheckConstraint,
    ExclusionConstraint,
    F,
    Index,
    Lower,
    Model,
    Now,
    Q,
    Range,
    UniqueConstraint,
    create_all,
    fields,
)


class Shop(Model):
    """What the others point to."""

    name = fields.CharField(max_length=20, unique=True)


class Item(Model):
    """Everything that both databases have."""

    shop = fields.ForeignKey(Shop, on_delete="CASCADE", related_name="items")
    twin = fields.OneToOneField("self", null=True, on_delete="SET_NULL", related_name="+")
    code = fields.CharField(max_length=10, db_index=True)
    label = fields.CharField(max_length=10, db_column="Label", db_default="none")
    count = fields.PositiveIntegerField(null=True)
    made = fields.DateTimeField(db_default=Now())
    price = fields.DecimalField(max_digits=6, decimal_places=2, db_default=5)

    class Meta:
        table = "Items of shops"
        constraints = (
            UniqueConstraint("shop", "code"),
            UniqueConstraint(Lower("label"), name="one_label", condition=Q(count__gt=1)),
            UniqueConstraint("count", "code", name="null_is_null", nulls_distinct=False),
            CheckConstraint(Q(count__lt=100) | Q(code="it's"), name="few"),
        )
        indexes = (
            Index("-code"),
            Index("label", "-count", condition=Q(count__isnull=False)),
            Index(Lower("code").desc(), "made", name="lowered"),
        )


class Talk(Model):
    """What PostgreSQL has besides."""

    _space = "postgres"  # create_all() of another test's application passes over it
    room = fields.IntegerField()
    begins = fields.DateTimeField()
    ends = fields.DateTimeField()
    note = fields.CharField(max_length=10)

    class Meta:
        constraints = (
            UniqueConstraint("room", name="late", deferrable="deferred", include=["note"]),
            UniqueConstraint("note", name="soon", deferrable="immediate"),
            ExclusionConstraint(
                [("room", "="), (Range("begins", "ends", "[]"), "&&")],
                name="apart",
                condition=~Q(note="x"),
                deferrable="deferred",
            ),
        )
        indexes = (
            Index("note", opclasses=["varchar_pattern_ops"], include=["room"], name="by_start"),
            Index(F("begins").desc(nulls="last"), name="latest"),
        )


@dataclass
class Table:
    """One table as a catalog tells it."""

    columns: dict[str, tuple[str, bool, str]] = field(default_factory=dict[str, Any])
    primary_key: tuple[str, ...] = ()
    foreign_keys: set[tuple[str, str, str, str]] = field(default_factory=set[Any])
    indexes: dict[str, str] = field(default_factory=dict[str, str])
    constraints: dict[str, str] = field(default_factory=dict[str, str])


def sqlite_table(path: str, name: str) -> Table:
    connection = sqlite3.connect(path)
    try:
        made = Table()
        columns = connection.execute("SELECT * FROM pragma_table_info(?)", (name,)).fetchall()
        made.columns = {c[1]: (c[2], not c[3], c[4] or "") for c in columns}
        made.primary_key = tuple(c[1] for c in sorted(columns, key=lambda c: c[5]) if c[5])
        keys = connection.execute("SELECT * FROM pragma_foreign_key_list(?)", (name,)).fetchall()
        made.foreign_keys = {(k[3], k[2], k[4], k[6]) for k in keys}
        texts = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ?"
            " AND sql IS NOT NULL",
            (name,),
        )
        made.indexes = {text[0]: text[1].partition(" ON ")[2] for text in texts}
        uniques = connection.execute("SELECT * FROM pragma_index_list(?)", (name,)).fetchall()
        made.constraints = {f"unique {u[1]}": u[3] for u in uniques if u[2] and u[3] != "pk"}
        (sql,) = connection.execute(
            "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)
        ).fetchone()
        made.constraints |= dict(re.findall(r'CONSTRAINT "(\w+)" (CHECK .+?|UNIQUE .+?),?\n', sql))
        return made
    finally:
        connection.close()


def postgres_table(admin: Any, schema: str, name: str) -> Table:
    owner = f"'{schema}.\"{name}\"'::regclass"

    def pairs(sql: str) -> dict[str, Any]:
        import json

        return json.loads(admin.value(f"SELECT COALESCE(json_object_agg(k, v), '{{}}') FROM {sql}"))

    columns = pairs(
        "(SELECT attname AS k, json_build_array(format_type(atttypid, atttypmod), NOT attnotnull, "
        "COALESCE(pg_get_expr(adbin, adrelid), '')) AS v FROM pg_attribute LEFT JOIN pg_attrdef "
        f"ON adrelid = attrelid AND adnum = attnum WHERE attrelid = {owner} AND attnum > 0) AS x"
    )
    constraints = pairs(
        "(SELECT conname AS k, pg_get_constraintdef(oid) AS v FROM pg_constraint "
        f"WHERE contype <> 'n' AND conrelid = {owner}) AS x"
    )
    indexes = pairs(
        "(SELECT c.relname AS k, pg_get_indexdef(c.oid) AS v FROM pg_index JOIN pg_class c "
        f"ON c.oid = indexrelid WHERE indrelid = {owner} AND NOT EXISTS (SELECT 1 FROM "
        "pg_constraint WHERE conindid = c.oid AND contype <> 'f')) AS x"
    )
    made = Table({name: (c[0], c[1], c[2]) for name, c in columns.items()})
    made.indexes = {k: v.partition(" USING ")[2] for k, v in indexes.items()}
    made.constraints = constraints
    return made


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_table_of_sqlite_is_what_the_model_says(empty: Any) -> None:
    create_all(Shop, Item)
    found = sqlite_table(empty.address, "Items of shops")
    assert {name: c[:2] for name, c in found.columns.items()} == {
        "id": ("INTEGER", True),
        "shop_id": ("INTEGER", False),
        "twin_id": ("INTEGER", True),
        "code": ("TEXT", False),
        "Label": ("TEXT", False),
        "count": ("INTEGER", True),
        "made": ("TEXT", False),
        "price": ("INTEGER", False),
    }
    defaults = {name: c[2] for name, c in found.columns.items() if c[2]}
    assert defaults.pop("made").startswith("(strftime(")
    assert defaults == {"Label": "'none'", "price": "500"}
    assert found.primary_key == ("id",)
    assert found.foreign_keys == {
        ("shop_id", "shop", "id", "CASCADE"),
        ("twin_id", "Items of shops", "id", "SET NULL"),
    }
    assert found.indexes == {
        "one_label": '"Items of shops" ((treefold_lower("Label"))) WHERE "count" > 1',
        "null_is_null": '"Items of shops" (("count" IS NULL), IFNULL("count", 0), "code")',
        "ix_Items of shops_shop_id": '"Items of shops" ("shop_id")',
        "ix_Items of shops_code": '"Items of shops" ("code")',
        "ix_Items of shops_code_desc": '"Items of shops" ("code" DESC)',
        "ix_Items of shops_Label_count_desc": (
            '"Items of shops" ("Label", "count" DESC) WHERE "count" IS NOT NULL'
        ),
        "lowered": '"Items of shops" ((treefold_lower("code")) DESC, "made")',
    }
    assert found.constraints["few"] == """CHECK (("count" < 100 OR "code" = 'it''s'))"""
    assert sorted(found.constraints.values()).count("u") == 2  # of the one-to-one, and declared


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
def test_a_table_of_postgres_is_what_the_model_says(empty: Any, admin: Any) -> None:
    create_all(Shop, Item)
    found = postgres_table(admin, empty.schema, "Items of shops")
    assert found.columns == {
        "id": ("bigint", False, ""),
        "shop_id": ("bigint", False, ""),
        "twin_id": ("bigint", True, ""),
        "code": ("character varying(10)", False, ""),
        "Label": ("character varying(10)", False, "'none'::character varying"),
        "count": ("integer", True, ""),
        "made": ("timestamp with time zone", False, "statement_timestamp()"),
        "price": ("numeric(6,2)", False, "5.00"),
    }
    table = '"Items of shops"'
    assert found.constraints == {
        "Items of shops_pkey": "PRIMARY KEY (id)",
        "fk_Items of shops_shop_id": (
            f"FOREIGN KEY (shop_id) REFERENCES {empty.schema}.shop(id) ON DELETE CASCADE"
        ),
        "fk_Items of shops_twin_id": (
            f"FOREIGN KEY (twin_id) REFERENCES {empty.schema}.{table}(id) ON DELETE SET NULL"
        ),
        "uq_Items of shops_twin_id": "UNIQUE (twin_id)",
        "uq_Items of shops_shop_id_code": "UNIQUE (shop_id, code)",
        "null_is_null": "UNIQUE NULLS NOT DISTINCT (count, code)",
        "ck_Items of shops_count": "CHECK ((count >= 0))",
        "few": "CHECK (((count < 100) OR ((code)::text = 'it''s'::text)))",
    }
    assert found.indexes == {
        "one_label": 'btree (lower(("Label")::text)) WHERE (count > 1)',
        "ix_Items of shops_shop_id": "btree (shop_id)",
        "ix_Items of shops_code": "btree (code)",
        "ix_Items of shops_code_desc": "btree (code DESC)",
        "ix_Items of shops_Label_count_desc": (
            'btree ("Label", count DESC) WHERE (count IS NOT NULL)'
        ),
        "lowered": "btree (lower((code)::text) DESC, made)",
    }


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
def test_what_only_postgres_has_is_in_its_catalog(empty: Any, admin: Any) -> None:
    create_all(Talk)
    found = postgres_table(admin, empty.schema, "talk")
    assert found.constraints == {
        "talk_pkey": "PRIMARY KEY (id)",
        "late": "UNIQUE (room) INCLUDE (note) DEFERRABLE INITIALLY DEFERRED",
        "soon": "UNIQUE (note) DEFERRABLE",
        "apart": (
            "EXCLUDE USING gist (room WITH =, tstzrange(begins, ends, '[]'::text) WITH &&) "
            "WHERE ((NOT ((note)::text = 'x'::text))) DEFERRABLE INITIALLY DEFERRED"
        ),
    }
    assert found.indexes == {
        "by_start": "btree (note varchar_pattern_ops) INCLUDE (room)",
        "latest": "btree (begins DESC NULLS LAST)",
    }


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
def test_creating_again_leaves_references_in_a_circle_alone(empty: Any, admin: Any) -> None:
    class Front(Model):
        back = fields.ForeignKey("Back", null=True, related_name="+")

    class Back(Model):
        front = fields.ForeignKey(Front, null=True, related_name="+")

    for _ in range(2):
        create_all(Front, Back)
    assert set(postgres_table(admin, empty.schema, "front").constraints) == {
        "front_pkey",
        "fk_front_back_id",
    }
