"""Changes whose every step is let fail: those of phases, and files of several steps.

`ROWS` are there before the change. `VALUES` are written after it, so that a way back has something
to lose.
"""

from __future__ import annotations

from phases_changes import CHANGES, Change, add, alter, one

ROWS = (
    "INSERT INTO author (id, name) VALUES (1, 'ann'), (2, 'bob')",
    "INSERT INTO book (id, author_id, title, subtitle, pages, rating, stock, color, isbn, code, "
    "price) VALUES (1, 1, 'One', NULL, 10, 3, 5, 'red', 'i-1', 'c1', {price}), "
    "(2, 2, 'Two', 'sub', 20, 4, 6, 'green', 'i-2', 'c2', {price}), "
    "(3, NULL, 'Three', NULL, 30, 5, 7, 'red', 'i-3', 'c3', {price})",
    "INSERT INTO tag (id, word) VALUES (1, 'new'), (2, NULL)",
)
STRANGER = (
    "INSERT INTO tag (id, word) VALUES (99, 'stranger')",
    "INSERT INTO book (id, author_id, title, subtitle, pages, rating, stock, color, isbn, code, "
    "price) VALUES (99, NULL, 'Stranger of as many letters as are let in', NULL, -1, 3, 5, "
    "'green', 'i-99-i-99-i99', 'c1', {price})",
)
"""What another program writes meanwhile: it breaks each constraint that a change brings."""

FILLS = {
    "a field that rows must have dropped": ["book.pages:1"],
    "unique values that rows must have dropped": ["book.title:{code}-{id}"],
}
FILL_BATCHES = """
def fill(models, work):
    def each(books):
        for book in books:
            book.slug = book.title.lower()
            book.save()

    work.batched(models.book.objects.all(), each, size=1)


def clear(models, work):
    models.book.objects.update(slug=None)
"""
SLUG = add("slug", "CharField(max_length=80, null=True)")
UNIQUE = add(
    "slug",
    "CharField(max_length=80, unique=True)",
    'fill=Concat(Value("book "), Cast("id", fields.TextField()))',
)
MORE = (
    one("a unique field of the row's values", UNIQUE, new_row={"slug": "s"}),
    one(
        "unique values that rows must have dropped",
        'DropConstraint("book", "uq_title")',
        'DropField("book", "title")',
        refused="which the running one needs. Instead, give the field null=True, a default or",
    ),
    one(
        "batches outside of a transaction",
        SLUG,
        'RunPython(fill, clear, transactional=False, tables=["book"])',
        alter("slug", "CharField(max_length=80)", ""),
        above=FILL_BATCHES,
        new_row={"slug": "s"},
    ),
    one(
        "SQL between changes",
        SLUG,
        'RunSQL("UPDATE book SET slug = \'by hand\'", "UPDATE book SET slug = NULL")',
        alter("slug", "CharField(max_length=80)", ""),
        new_row={"slug": "s"},
    ),
    one(
        "several statements of SQL",
        'RunSQL(["UPDATE tag SET word = \'x\'", "UPDATE book SET rating = rating + 1"], '
        "[\"UPDATE tag SET word = 'new' WHERE id = 1\", "
        '"UPDATE tag SET word = NULL WHERE id = 2", '
        '"UPDATE book SET rating = rating - 1"])',
        add("open", "BooleanField(default=True)", "fill=True"),
    ),
    one(
        "a table and a key to it",
        'CreateTable("shop", {"id": fields.BigAutoField(primary_key=True), '
        '"name": fields.CharField(max_length=20)}, model="Shop")',
        add("shop", 'ForeignKey("shop", "CASCADE", null=True, related_name="books")'),
        'AddIndex("book", Index("shop", "pages", name="ix_shop"))',
        'AddConstraint("book", UniqueConstraint("shop", "code", name="uq_shop"))',
    ),
    one(
        "two tables changed, one renamed",
        'RenameTable("tag", "label")',
        'AddField("label", "color", fields.CharField(max_length=9, default="red"), fill="red")',
        alter("title", "CharField(max_length=80, unique=True)", ""),
        'DropConstraint("book", "uq_title")',
        refused="the running release still uses the table",
    ),
    one(
        "another type with its values",
        alter("pages", "BigIntegerField()", ""),
        alter("rating", "CharField(max_length=9)", 'using="CAST(rating AS text)"'),
        alter("code", "TextField()", ""),
        refused="converts values that the running release still reads",
    ),
    one(
        "options of a table",
        'SetOptions("tag", model="Label")',
        'AddField("tag", "rank", fields.IntegerField(null=True))',
    ),
    Change(
        "three files",
        (
            (SLUG,),
            ('RenameField("book", "slug", "path")',),
            ('AddIndex("book", Index("path", name="ix_path"))', 'DropTable("tag")'),
        ),
    ),
)
NEED_NO_ROWS = {"a field with a default that is not in the file's fill", "a narrower choice"}
ALL: dict[str, Change] = {
    change.name: change for change in (*CHANGES, *MORE) if change.name not in NEED_NO_ROWS
}
