"""Changes of a schema, each with the rows that the release before and the one after write.

Both releases start from `BASE`. A row is what a release gives to `objects.create`, besides a title
and pages. `between` is what the new release reads of an old row between the phases, `after` once
contract has run, and `old_reads` what the old release reads of a new row, each for fields that the
other release does not write itself; a function gets that row as its own release reads it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

ENUMS = """
import enum

Color = enum.Enum("Color", {"RED": "red", "GREEN": "green"})
Wide = enum.Enum("Color", {"RED": "red", "GREEN": "green", "ULTRAMARINE": "ultramarine"})
Narrow = enum.Enum("Color", {"RED": "red"})
"""
IMPORTS = """
import datetime as dt
import uuid

from treefold_orm import CheckConstraint, Now, Q, Random, UniqueConstraint
from treefold_migrations import AddConstraint, DropConstraint, DropIndex, DropTable
"""
KEY = '"id": fields.BigAutoField(primary_key=True)'
AUTHOR = (
    'CreateTable("author", {"id": fields.BigAutoField(primary_key=True), '
    '"name": fields.CharField(max_length=40)}, model="Author")'
)
BOOK = """CreateTable("book", {
            "id": fields.BigAutoField(primary_key=True),
            "author": fields.ForeignKey("author", "CASCADE", null=True),
            "title": fields.CharField(max_length=40),
            "subtitle": fields.CharField(max_length=40, null=True),
            "pages": fields.IntegerField(),
            "rating": fields.IntegerField(default=3),
            "stock": fields.IntegerField(db_default=5),
            "color": fields.EnumField(Color, default=Color.RED),
            "isbn": fields.CharField(max_length=13, default="-", db_index=True),
            "code": fields.CharField(max_length=30),
            "price": fields.DecimalField(max_digits=6, decimal_places=2, default=1),
        }, model="Book",
            constraints=[UniqueConstraint("title", name="uq_title")],
            indexes=[Index("pages", name="ix_pages")])"""
BASE = (
    AUTHOR,
    BOOK,
    'CreateTable("tag", {"id": fields.BigAutoField(primary_key=True), '
    '"word": fields.CharField(max_length=20, null=True)}, model="Tag")',
)


@dataclass(frozen=True)
class Change:
    """One change: the operations of its files, what both releases write, and what they read.

    `refused` is a part of the message for a change that expand refuses.
    """

    name: str
    files: tuple[tuple[str, ...], ...]
    old_row: dict[str, Any] = field(default_factory=dict[str, Any])
    new_row: dict[str, Any] = field(default_factory=dict[str, Any])
    between: dict[str, Any] = field(default_factory=dict[str, Any])
    after: dict[str, Any] | None = None
    old_reads: dict[str, Any] = field(default_factory=dict[str, Any])
    above: str = ""
    refused: str = ""


def imports_of(*texts: str) -> str:
    """Return what stands above these texts in a file; without the enums, which are slow to make."""
    has_enum = re.search(r"\b(Color|Wide|Narrow)\b", " ".join(texts))
    return IMPORTS + ENUMS if has_enum else IMPORTS


def alter(name: str, declared: str, *options: str) -> str:
    return f'AlterField("book", "{name}", {", ".join(["fields." + declared, *options])})'


def add(name: str, declared: str, *options: str) -> str:
    return f'AddField("book", "{name}", {", ".join(["fields." + declared, *options])})'


def one(name: str, *operations: str, **options: Any) -> Change:
    return Change(name, (operations,), **options)


def title_of(row: dict[str, Any]) -> Any:
    return row["title"]


def lower_title(row: dict[str, Any]) -> Any:
    return row["title"].lower()


def headline_of(row: dict[str, Any]) -> Any:
    return row["headline"]


FILL_SLUGS = """
def fill_slugs(models, work):
    for book in models.book.objects.filter(slug=None):
        book.slug = book.title.lower()
        book.save()
"""

CHANGES = (
    # -- new columns
    one(
        "a nullable field",
        add("slug", "CharField(max_length=20, null=True)"),
        new_row={"slug": "s"},
        between={"slug": None},
    ),
    one(
        "a field with a plain default",
        add("slug", 'CharField(max_length=20, default="new")', 'fill="new"'),
        new_row={"slug": "s"},
        between={"slug": "new"},
    ),
    one(
        "a field with a default that is not in the file's fill",
        add("slug", 'CharField(max_length=20, default="new")'),
        new_row={"slug": "s"},
        between={"slug": "new"},
    ),
    one(
        "a field with --fill",
        add("slug", "CharField(max_length=20)", 'fill="rows"'),
        new_row={"slug": "s"},
        between={"slug": "rows"},
    ),
    one(
        "a nullable field with --fill",
        add("slug", "CharField(max_length=20, null=True)", 'fill="rows"'),
        new_row={"slug": None},
        between={"slug": "rows"},
    ),
    one(
        "a field with a db_default",
        add("slug", 'CharField(max_length=20, db_default="db")'),
        new_row={},
        between={"slug": "db"},
    ),
    one(
        "a field with a callable default and a fill",
        add("token", "UUIDField()", 'fill=uuid.UUID("00000000-0000-4000-8000-000000000001")'),
        new_row={"token": "10000000-0000-4000-8000-000000000002"},
        between={"token": "00000000-0000-4000-8000-000000000001"},
    ),
    one(
        "a field that is nullable until contract",
        add("slug", "CharField(max_length=40, null=True)"),
        'RunPython(fill_slugs, tables=["book"])',
        'RunPython(fill_slugs, tables=["book"], when="contract")',
        alter("slug", "CharField(max_length=40)", ""),
        above=FILL_SLUGS,
        new_row={"slug": "s"},
        after={"slug": lower_title},
    ),
    one(
        "a creation time",
        add("made", "DateTimeField(auto_now_add=True)", "fill=Now()"),
        between={"made": "any"},
    ),
    one(
        "a boolean with a default",
        add("open", "BooleanField(default=True)", "fill=True"),
        new_row={"open": False},
        between={"open": True},
    ),
    one(
        "a decimal with a default",
        add("tax", "DecimalField(max_digits=5, decimal_places=2, default=0)", "fill=0"),
        new_row={"tax": "1.50"},
        between={"tax": "0.00"},
    ),
    one(
        "a JSON field with a default",
        add("extra", "JSONField(default={})", "fill={}"),
        new_row={"extra": {"a": 1}},
        between={"extra": {}},
    ),
    one(
        "a choice with a default",
        add("mood", "EnumField(Color, default=Color.RED)", "fill=Color.RED"),
        new_row={"mood": "green"},
        between={"mood": "red"},
    ),
    one(
        "a nullable foreign key",
        add("editor", 'ForeignKey("author", "CASCADE", null=True, related_name="edited")'),
        new_row={"editor_id": 1},
        between={"editor_id": None},
    ),
    one(
        "a new field with an index and a constraint over it",
        add("slug", "CharField(max_length=20, null=True)"),
        'AddIndex("book", Index("slug", name="ix_slug"))',
        'AddConstraint("book", UniqueConstraint("slug", name="uq_slug"))',
        new_row={"slug": "numbered"},
        between={"slug": None},
    ),
    one(
        "a field with a default, renamed before it is released",
        add("slug", "CharField(max_length=20, null=True)"),
        'RenameField("book", "slug", "path")',
        new_row={"path": "s"},
        between={"path": None},
    ),
    # -- changed columns
    one("a removed db_default", alter("stock", "IntegerField()"), new_row={"stock": 8}),
    one("a db_default that becomes a default", alter("stock", "IntegerField(default=7)")),
    one("a new db_default", alter("rating", "IntegerField(default=3, db_default=4)")),
    one(
        "another db_default that the new release writes itself",
        alter("stock", "IntegerField(default=6, db_default=6)"),
    ),
    one(
        "a wider choice",
        alter("color", "EnumField(Wide, default=Wide.RED)"),
        new_row={"color": "green"},
    ),
    one("longer text", alter("title", "CharField(max_length=80)"), new_row={"title": "long"}),
    one("text without a limit", alter("title", "TextField()"), new_row={"title": "long"}),
    one(
        "shorter text",
        alter("isbn", 'CharField(max_length=5, default="-", db_index=True)', 'when="contract"'),
        new_row={"isbn": "i"},
    ),
    one("NULL allowed", alter("rating", "IntegerField(null=True)"), new_row={"rating": None}),
    one(
        "NULL forbidden",
        alter("subtitle", "CharField(max_length=40)", 'fill="-"', 'when="contract"'),
        new_row={"subtitle": "s"},
        between={"subtitle": None},
        after={"subtitle": "-"},
    ),
    one(
        "more digits",
        alter("price", "DecimalField(max_digits=9, decimal_places=2, default=1)"),
        new_row={"price": "12345.25"},
    ),
    one(
        "a unique field",
        alter("code", "CharField(max_length=30, unique=True)", 'when="contract"'),
    ),
    one("an index removed from a field", alter("isbn", 'CharField(max_length=13, default="-")')),
    one(
        "a field renamed over its column",
        alter("title", 'CharField(max_length=40, db_column="title")'),
        'RenameField("book", "title", "headline")',
        between={"headline": title_of},
        old_reads={"title": headline_of},
    ),
    one("a nullable field dropped", 'DropField("book", "subtitle")', old_reads={"subtitle": None}),
    one(
        "a field with a default dropped",
        'DropField("book", "rating")',
        old_reads={"rating": 3},
    ),
    one(
        "a field with a db_default dropped",
        'DropField("book", "stock")',
        old_reads={"stock": 5},
    ),
    # -- parts
    one("an index", 'AddIndex("book", Index("title", "pages", name="ix_both"))'),
    one("an index dropped", 'DropIndex("book", "ix_pages")'),
    one(
        "a check",
        'AddConstraint("book", CheckConstraint(Q(pages__gte=0), name="ck_pages"))',
    ),
    one("a constraint dropped", 'DropConstraint("book", "uq_title")'),
    # -- tables
    Change(
        "a table behind a file that drops a field",
        (
            ('DropField("book", "subtitle")',),
            (f'CreateTable("shop", {{{KEY}}}, model="Shop")',),
        ),
        old_reads={"subtitle": None},
    ),
    one(
        "a new many-to-many",
        f"""CreateTable("book_tags", {{{KEY},
            "book": fields.ForeignKey("book", "CASCADE", related_name="+"),
            "tag": fields.ForeignKey("tag", "CASCADE", related_name="+")}}, model="book_tags")""",
    ),
    one("a table dropped", 'DropTable("tag")'),
    # -- refused, with the way
    one(
        "a renamed column",
        'RenameField("book", "title", "headline")',
        refused=r"column 'title'\. Instead, keep the column with db_column=\"title\", which needs",
    ),
    one(
        "a renamed table",
        'RenameTable("tag", "label")',
        refused=r"table 'tag'\. Instead, keep the table with Meta\.table = \"tag\", which needs",
    ),
    one(
        "a moved column",
        alter("title", 'CharField(max_length=40, db_column="headline")', 'when="contract"'),
        refused=r"column 'title'\. Instead, keep the column with db_column=\"title\", which needs",
    ),
    one(
        "a narrower choice",
        alter("color", "EnumField(Narrow, default=Narrow.RED)"),
        refused="still writes values that the new one cannot read. Instead, keep the members",
    ),
    one(
        "another type",
        alter("isbn", "TextField()")
        .replace("TextField()", "IntegerField()")
        .replace("IntegerField()", 'IntegerField(default=0), when="contract", using="0"'),
        refused="the running release still reads.*Instead, add a field of the new type",
    ),
    one(
        "another number of decimals",
        alter("price", "DecimalField(max_digits=9, decimal_places=4, default=1)"),
        refused="Instead, add a field of the new type",
    ),
    one(
        "another db_default",
        alter("stock", "IntegerField(db_default=6)"),
        refused="expect another one. Instead, give the field the new value as its default",
    ),
    one(
        "a field that rows must have dropped",
        'DropIndex("book", "ix_pages")',
        'DropField("book", "pages")',
        refused="which the running one needs. Instead, give the field null=True, a default or",
    ),
    one(
        "another action of a foreign key",
        alter("author", 'ForeignKey("author", "SET_NULL", null=True)'),
        refused="still relies on the old reference. Instead, apply the file with `migrate`",
    ),
)

CHANGES_BY_ROW = (
    one(
        "a field with a default that differs for each row",
        add("luck", "FloatField(db_default=Random())"),
        between={"luck": "any"},
    ),
    one(
        "a nullable field with a default that differs for each row",
        add("luck", "FloatField(null=True, db_default=Random())"),
        between={"luck": "any"},
    ),
)
"""Changes whose values differ from run to run."""
