"""A random walk over schemas: each step ends at the schema that creating it would give, and no row
is lost or changed.
"""

from __future__ import annotations

import copy
import os
import random
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from plan_engines import Bench

from treefold_migrations._plan.between import PlannerHints, compute_table_changes
from treefold_orm import (
    CheckConstraint,
    Index,
    Lower,
    Q,
    SearchIndex,
    UniqueConstraint,
    fields,
)
from treefold_orm.schema import TableShape

LONG = os.environ.get("TREEFOLD_MIGRATIONS") == "long"
WALKS, STEPS = (100, 21) if LONG else (2, 15)

NUMBERS = ("small", "integer", "big", "positive")
WIDER: dict[str, tuple[str, ...]] = {
    "small": ("integer", "big", "positive", "price", "float", "short"),
    "integer": ("big", "small", "fine", "short"),
    "big": ("integer", "price"),
    "positive": ("integer", "big", "short"),
    "price": ("fine", "real_price", "short"),
    "fine": ("price", "float"),
    "real_price": ("price",),
    "float": ("fine",),
    "flag": ("integer", "short"),
    "short": ("text", "long"),
    "long": ("text", "short"),
    "text": ("short", "long"),
    "day": ("moment", "short"),
    "moment": ("day", "long", "naive"),
    "naive": ("moment",),
    "uuid": ("long",),
    "json": ("long",),
}
CLASSES: dict[str, Any] = {
    "small": fields.SmallIntegerField,
    "integer": fields.IntegerField,
    "big": fields.BigIntegerField,
    "positive": fields.PositiveIntegerField,
    "price": partial(fields.DecimalField, max_digits=12, decimal_places=2),
    "fine": partial(fields.DecimalField, max_digits=14, decimal_places=4),
    "real_price": partial(fields.DecimalField, max_digits=12, decimal_places=2, storage="real"),
    "float": fields.FloatField,
    "flag": fields.BooleanField,
    "short": partial(fields.CharField, max_length=40),
    "long": partial(fields.CharField, max_length=60),
    "text": fields.TextField,
    "day": fields.DateField,
    "moment": fields.DateTimeField,
    "naive": partial(fields.DateTimeField, zone=None),
    "uuid": fields.UUIDField,
    "json": fields.JSONField,
}
TEXTS = ("short", "long", "text")
NO_DEFAULT = ("naive", "real_price", "json", "day", "moment", "uuid", "flag", "float")


def literal(kind: str, number: int, engine: str) -> str:
    """A value of a kind, other for each number."""
    sqlite = engine == "sqlite"
    units = {"price": 100, "fine": 10000}
    if kind in units:
        return str(number * units[kind]) if sqlite else str(number)
    if kind == "flag":
        return "TRUE" if number % 2 else "FALSE"
    day = f"20{number % 90 + 10:02d}-01-{number % 28 + 1:02d}"
    texts = {
        "day": day,
        "moment": f"{day} 00:00:00.000000+00:00",
        "naive": f"{day} 00:00:00",
        "uuid": f"00000000-0000-4000-8000-{number:012d}",
        "json": f"[{number}]",
        "short": f"t{number}",
        "long": f"t{number}",
        "text": f"t{number}",
    }
    return f"'{texts[kind]}'" if kind in texts else str(number)


@dataclass
class Column:
    """One field of the walk."""

    kind: str
    null: bool = False
    unique: bool = False
    index: bool = False
    default: int | None = None
    target: str = ""
    on_delete: str = "RESTRICT"
    column: str | None = None

    def build(self) -> Any:
        options: dict[str, Any] = {"null": self.null, "db_column": self.column}
        if self.target:
            kind: Any = fields.OneToOneField if self.unique else fields.ForeignKey
            return kind(self.target, self.on_delete, **options)
        if self.default is not None:
            text = self.kind in TEXTS
            options["db_default"] = f"t{self.default}" if text else self.default
        return CLASSES[self.kind](unique=self.unique, db_index=self.index, **options)


@dataclass
class Table:
    """One table of the walk; `extras` are constraints and indexes by name."""

    key: str = "big"
    columns: dict[str, Column] = field(default_factory=dict[str, Column])
    extras: dict[str, tuple[str, list[str]]] = field(
        default_factory=dict[str, tuple[str, list[str]]]
    )

    def used(self) -> set[str]:
        return {name for _, names in self.extras.values() for name in names}

    def is_unique(self, column: str) -> bool:
        """True if a constraint holds it already: PostgreSQL makes one of two in CREATE TABLE."""
        return self.columns[column].unique or ("unique", [column]) in self.extras.values()

    def build(self, name: str) -> TableShape:
        key = {"big": fields.BigAutoField, "auto": fields.AutoField}[self.key](primary_key=True)
        constraints: list[Any] = []
        indexes: list[Any] = []
        for extra, (kind, names) in self.extras.items():
            first = names[0]
            match kind:
                case "unique":
                    constraints.append(UniqueConstraint(*names, name=extra))
                case "partial":
                    condition = Q(**{f"{first}__isnull": False})
                    constraints.append(UniqueConstraint(*names, name=extra, condition=condition))
                case "check":
                    constraints.append(CheckConstraint(~Q(**{first: 30000}), name=extra))
                case "index":
                    indexes.append(Index(*[f"-{names[0]}", *names[1:]], name=extra))
                case "lower":
                    indexes.append(Index(Lower(first), name=extra))
                case _:
                    indexes.append(SearchIndex(names, name=extra))
        built = {"id": key, **{n: column.build() for n, column in self.columns.items()}}
        return TableShape(name, name, built, constraints=tuple(constraints), indexes=tuple(indexes))


Schema = dict[str, Table]


def shapes_of(schema: Schema) -> dict[str, TableShape]:
    return {name: table.build(name) for name, table in schema.items()}


class Walk:
    """One schema, the database that has it, and what may happen to it next."""

    def __init__(self, bench: Bench, rng: random.Random) -> None:
        self.bench = bench
        self.random = rng
        self.schema: Schema = {}
        self.number = 0

    def name(self, prefix: str) -> str:
        self.number += 1
        odd = self.random.choice(["", "_of_a_rather_long_name_that_is_near_the_limit", "X"])
        return f"{prefix}{self.number}{odd}"

    def step(self) -> None:
        """Change the schema once, and hold the database against it."""
        before = copy.deepcopy(self.schema)
        actions = self.ACTIONS if self.schema else (Walk.create,)
        answers = None
        while answers is None:
            self.schema = copy.deepcopy(before)
            answers = self.random.choice(actions)(self)
        self.check(before, answers)
        for name in list(self.schema):
            self.insert(name)

    def check(self, before: Schema, answers: PlannerHints) -> None:
        bench = self.bench
        rows = {name: self.rows(name, table) for name, table in before.items()}
        changes = compute_table_changes(
            shapes_of(before), shapes_of(self.schema), dialect=bench.dialect, answers=answers
        )
        bench.change(changes)
        assert bench.catalog() == bench.expected(shapes_of(self.schema).values())
        if bench.engine == "sqlite":
            assert bench.ask("PRAGMA foreign_key_check") == []
        for name, table in self.schema.items():
            source = answers.tables.get(name, name)
            if source in rows:
                self.compare(name, table, before[source], rows[source], answers)

    def compare(
        self,
        name: str,
        table: Table,
        before: Table,
        rows: dict[str, list[Any]],
        answers: PlannerHints,
    ) -> None:
        after = self.rows(name, table)
        assert after["id"] == rows["id"]
        renamed = answers.fields.get(name, {})
        for column, made in table.columns.items():
            source = renamed.get(column, column)
            if source is None or source not in before.columns:
                continue
            old = before.columns[source]
            if old.kind != made.kind:
                assert [v is None for v in after[column]] == [v is None for v in rows[source]]
            elif (name, column) in answers.fills:
                pairs = zip(rows[source], after[column], strict=True)
                assert all(then == now for then, now in pairs if then is not None)
            else:
                assert after[column] == rows[source]

    def rows(self, name: str, table: Table) -> dict[str, list[Any]]:
        columns = {"id": "id", **{n: self.column_name(n, c) for n, c in table.columns.items()}}
        found = self.bench.rows(name, list(columns.values()), "id")
        return {n: [row[place] for row in found] for place, n in enumerate(columns)}

    @staticmethod
    def column_name(name: str, column: Column) -> str:
        return column.column or (f"{name}_id" if column.target else name)

    def insert(self, name: str) -> None:
        table, engine = self.schema[name], self.bench.engine
        if self.bench.ask(f'SELECT count(*) FROM "{name}"')[0][0] > 4:
            return
        self.number += 1
        row: dict[str, str] = {}
        for column, made in table.columns.items():
            value = literal(made.kind, self.number, engine) if not made.target else ""
            if made.target:
                ids = self.bench.ask(f'SELECT max("id") FROM "{made.target}"')[0][0]
                taken = made.unique and ids is not None
                value = "NULL" if ids is None or taken else str(ids)
                if value == "NULL" and not made.null:
                    return
            if made.unique and made.kind == "flag":
                return
            row[self.column_name(column, made)] = value
        if any(c.kind == "flag" for c in table.columns.values()) and any(
            kind in {"unique", "partial"} for kind, _ in table.extras.values()
        ):
            return
        self.bench.insert(name, row)

    # -- what may happen ------------------------------------------------------------------------

    def table(self) -> str:
        return self.random.choice(list(self.schema))

    def column(self, *kinds: str) -> tuple[str, str] | None:
        found = [
            (t, c)
            for t, table in self.schema.items()
            for c, column in table.columns.items()
            if not column.target and (not kinds or column.kind in kinds)
        ]
        return self.random.choice(found) if found else None

    def fresh(self) -> Column:
        kind = self.random.choice(list(CLASSES))
        return Column(
            kind,
            null=self.random.random() < 0.5,
            index=self.random.random() < 0.2,
            column=self.name("col ") if self.random.random() < 0.1 else None,
        )

    def create(self) -> PlannerHints | None:
        if len(self.schema) > 3:
            return None
        table = Table(self.random.choice(["big", "auto"]))
        for _ in range(self.random.randint(0, 3)):
            table.columns[self.name("f").rstrip("_")] = self.fresh()
        if self.schema and self.random.random() < 0.5:
            table.columns[self.name("r")] = Column("", null=True, target=self.table())
        self.schema[self.name("t")] = table
        return PlannerHints()

    def drop(self) -> PlannerHints | None:
        name = self.table()
        if any(c.target == name for t in self.schema.values() for c in t.columns.values()):
            return None
        del self.schema[name]
        return PlannerHints()

    def rename(self) -> PlannerHints:
        old, new = self.table(), self.name("t")
        self.schema = {new if n == old else n: table for n, table in self.schema.items()}
        for table in self.schema.values():
            for column in table.columns.values():
                column.target = new if column.target == old else column.target
        return PlannerHints(tables={new: old})

    def add(self) -> PlannerHints:
        name, column, made = self.table(), self.name("f"), self.fresh()
        self.schema[name].columns[column] = made
        fills: dict[tuple[str, str], str] = {}
        if self.random.random() < 0.4 and made.kind not in NO_DEFAULT:
            made.default = 3
        elif not made.null or self.random.random() < 0.3:
            value = literal(made.kind, 7, self.bench.engine)
            if made.kind in TEXTS and self.random.random() < 0.5:
                value = "'n' || \"id\""
            fills[name, column] = value
        return PlannerHints(fills=fills)

    def remove(self) -> PlannerHints | None:
        name = self.table()
        table = self.schema[name]
        free = [c for c in table.columns if c not in table.used()]
        if not free:
            return None
        del table.columns[self.random.choice(free)]
        return PlannerHints()

    def rename_column(self) -> PlannerHints | None:
        name = self.table()
        table = self.schema[name]
        if not table.columns:
            return None
        old, new = self.random.choice(list(table.columns)), self.name("f")
        table.columns = {new if c == old else c: made for c, made in table.columns.items()}
        for extra, (kind, names) in table.extras.items():
            table.extras[extra] = kind, [new if n == old else n for n in names]
        return PlannerHints(fields={name: {new: old}})

    def move_column(self) -> PlannerHints | None:
        found = self.column()
        if found is None:
            return None
        self.schema[found[0]].columns[found[1]].column = self.name('odd "col" ')
        return PlannerHints()

    def retype(self) -> PlannerHints | None:
        found = self.column()
        if found is None:
            return None
        name, column = found
        table = self.schema[name]
        made = table.columns[column]
        if column in table.used() and self.random.random() < 0.5:
            return None
        kind = self.random.choice(WIDER[made.kind])
        numeric = {"unique", "index"}
        if any(column in names and k not in numeric for k, names in table.extras.values()):
            return None
        made.kind, made.default = kind, None
        return PlannerHints()

    def toggle_null(self) -> PlannerHints | None:
        found = self.column()
        if found is None:
            return None
        made = self.schema[found[0]].columns[found[1]]
        made.null = not made.null
        unique = made.unique or found[1] in self.schema[found[0]].used()
        if made.null:
            return PlannerHints()
        if unique or self.random.random() < 0.2:
            column = self.column_name(found[1], made).replace('"', '""')
            if self.bench.ask(f'SELECT 1 FROM "{found[0]}" WHERE "{column}" IS NULL'):
                return None
            return PlannerHints()
        return PlannerHints(fills={found: literal(made.kind, 8, self.bench.engine)})

    def toggle_unique(self) -> PlannerHints | None:
        found = self.column(*NUMBERS, *TEXTS, "uuid", "price")
        if found is None:
            return None
        made = self.schema[found[0]].columns[found[1]]
        repeated = self.schema[found[0]].is_unique(found[1]) or not self.distinct(*found)
        if repeated and not made.unique:
            return None
        made.unique = not made.unique
        return PlannerHints()

    def distinct(self, name: str, column: str) -> bool:
        made = self.schema[name].columns[column]
        quoted = self.column_name(column, made).replace('"', '""')
        total, different = self.bench.ask(
            f'SELECT count("{quoted}"), count(DISTINCT "{quoted}") FROM "{name}"'
        )[0]
        return total == different

    def toggle_index(self) -> PlannerHints | None:
        found = self.column()
        if found is None:
            return None
        made = self.schema[found[0]].columns[found[1]]
        made.index = not made.index
        return PlannerHints()

    def toggle_default(self) -> PlannerHints | None:
        found = self.column(*NUMBERS, *TEXTS, "price", "fine")
        if found is None:
            return None
        made = self.schema[found[0]].columns[found[1]]
        made.default = None if made.default is not None else self.random.randint(1, 9)
        return PlannerHints()

    def add_extra(self) -> PlannerHints | None:
        kind = self.random.choice(["unique", "partial", "check", "index", "lower", "search"])
        kinds = {"check": NUMBERS, "lower": TEXTS, "search": TEXTS}.get(kind, (*NUMBERS, *TEXTS))
        found = self.column(*kinds)
        if found is None:
            return None
        name, column = found
        if kind in {"unique", "partial"} and not self.distinct(name, column):
            return None
        extras = self.schema[name].extras
        if kind == "search" and any(k == kind for k, _ in extras.values()):
            return None
        if kind == "unique" and self.schema[name].is_unique(column):
            return None
        extras[self.name("x")] = kind, [column]
        return PlannerHints()

    def drop_extra(self) -> PlannerHints | None:
        table = self.schema[self.table()]
        if not table.extras:
            return None
        del table.extras[self.random.choice(list(table.extras))]
        return PlannerHints()

    def rename_extra(self) -> PlannerHints | None:
        table = self.schema[self.table()]
        if not table.extras:
            return None
        old = self.random.choice(list(table.extras))
        table.extras = {self.name("x") if e == old else e: x for e, x in table.extras.items()}
        return PlannerHints()

    def refer(self) -> PlannerHints:
        name = self.table()
        made = Column("", null=True, target=self.table(), unique=self.random.random() < 0.3)
        self.schema[name].columns[self.name("r")] = made
        return PlannerHints()

    def change_reference(self) -> PlannerHints | None:
        found = [c for t in self.schema.values() for c in t.columns.values() if c.target]
        if not found:
            return None
        made = self.random.choice(found)
        made.on_delete = self.random.choice(["RESTRICT", "PROTECT", "CASCADE", "SET_NULL"])
        return PlannerHints()

    def widen_key(self) -> PlannerHints:
        table = self.schema[self.table()]
        table.key = "auto" if table.key == "big" else "big"
        return PlannerHints()

    ACTIONS = (
        *(create, drop, rename, add, add, remove, rename_column, move_column, retype, retype),
        *(toggle_null, toggle_null, toggle_unique, toggle_index, toggle_default, add_extra),
        *(add_extra, drop_extra, rename_extra, refer, change_reference, widen_key),
    )


def test_a_walk_over_schemas_ends_where_create_all_would(bench: Bench) -> None:
    @settings(
        max_examples=WALKS,
        deadline=None,
        database=None,
        derandomize=not LONG,
        suppress_health_check=[HealthCheck.too_slow],
        phases=[Phase.generate],
        print_blob=True,
    )
    @given(st.integers(0, 2**32))
    def walk(seed: int) -> None:
        with bench.place():
            walked = Walk(bench, random.Random(seed))
            for _ in range(STEPS):
                walked.step()

    walk()
