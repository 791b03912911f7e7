"""What type checkers must infer of user code, without a plugin.

pyright checks this file with all others; `mypy --strict` on this file must be clean as well. The
lines marked as ignored must be errors: both checkers report an ignore that is not needed.
"""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import Any, Self, TypedDict, assert_type

from treefold_orm import (
    CASCADE,
    CTE,
    SET_NULL,
    BaseQuery,
    Column,
    CompositePrimaryKey,
    Condition,
    Count,
    ExclusionConstraint,
    FilterSet,
    Func,
    Index,
    Lower,
    Manager,
    ManyRelated,
    Model,
    Page,
    PlanStep,
    Q,
    QuerySet,
    Range,
    RangeOperators,
    RelatedManager,
    Reverse,
    SearchIndex,
    SearchQuery,
    SearchRank,
    SearchVector,
    Shape,
    TextChoices,
    UniqueConstraint,
    ValidationError,
    fields,
    transaction,
)
from treefold_orm.testing import amake, make


class Writer(Model):
    """The one side."""

    name = fields.CharField(max_length=10)
    nick = fields.CharField(max_length=10, null=True)
    born = fields.DateField(null=True)
    books: Reverse[Book]


class Form(TextChoices):
    """Text with labels."""

    NOVEL = "n", "A novel"
    STORY = "s"


class Genre(Model):
    """The far side."""

    code = fields.UUIDField(primary_key=True)


class BookQuery(QuerySet["Book"]):
    """A query of one's own, whose methods follow each other."""

    def long(self) -> Self:
        """Books with many pages."""
        return self.filter(pages__gte=500)


class BookManager(Manager["Book"]):
    """A manager of one's own."""

    def get_queryset(self) -> QuerySet[Book]:
        """Only books with a title."""
        return super().get_queryset().exclude(title="")

    def thick(self) -> QuerySet[Book]:
        """Books with very many pages."""
        return self.filter(pages__gte=1000)


class Book(Model):
    """The many side."""

    title = fields.CharField(max_length=10)
    pages = fields.IntegerField(default=0)
    form = fields.CharField(max_length=1, choices=Form, default=Form.NOVEL)
    price = fields.DecimalField(max_digits=5, decimal_places=2)
    published = fields.DateTimeField(null=True)
    writer = fields.ForeignKey(Writer, related_name="books")
    editor = fields.ForeignKey(Writer, null=True, related_name="edited")
    genres = fields.ManyToManyField(Genre)
    sequel = fields.ForeignKey("Book", null=True, related_name="before")
    objects = BookQuery.as_manager()
    titled = BookManager()
    both = BookManager.from_queryset(BookQuery)()

    class Meta:
        indexes = (SearchIndex(["title"], config="english", weights="A"),)


class Entry(Model):
    """A key of several columns, a default of the database, constraints over expressions."""

    pk = CompositePrimaryKey("book", "number")
    book = fields.ForeignKey(Book, CASCADE, related_name="lines")
    number = fields.IntegerField()
    text = fields.TextField(db_default="", verbose_name="words", help_text="One line")
    begins = fields.IntegerField(null=True, db_default=None)
    ends = fields.IntegerField(null=True)

    class Meta:
        constraints = (
            UniqueConstraint(Lower("text"), "number", name="one", condition=Q(number__gt=1)),
            UniqueConstraint("number", nulls_distinct=False, deferrable="deferred"),
            ExclusionConstraint([(Range("begins", "ends"), RangeOperators.OVERLAPS)], name="apart"),
        )
        indexes = (Index("-number", Lower("text").desc(), name="by_number", include=["book"]),)


class Loud(Func):
    """A function of one's own."""

    template = "upper({})"
    output_field = fields.TextField()


def instances(book: Book, writer: Writer, genre: Genre) -> None:
    """Attributes of instances have the types of their fields."""
    assert_type(book.title, str)
    assert_type(book.pages, int)
    assert_type(book.price, decimal.Decimal)
    assert_type(book.published, dt.datetime | None)
    assert_type(book.writer, Writer)
    assert_type(book.writer.name, str)
    assert_type(book.editor, Writer | None)
    assert_type(writer.nick, str | None)
    assert_type(writer.born, dt.date | None)
    assert_type(genre.code, uuid.UUID)
    assert_type(writer.books, RelatedManager[Book])
    assert_type(book.genres, ManyRelated[Genre])
    book.title = "x"
    book.title = 5  # type: ignore[assignment]  # a CharField is text
    book.editor = None
    book.writer = None  # type: ignore[assignment]  # not nullable


async def relations(book: Book, writer: Writer, genre: Genre) -> None:
    """Related managers take rows of their model or keys."""
    assert_type(writer.books.create(title="x"), Book)
    assert_type(writer.books.remove(book), int)
    assert_type(await writer.books.aclear(), int)
    writer.books.add(book, 5)
    writer.books.set(Book.objects.filter(pages=3), clear=True)
    await book.genres.aset([genre], through_defaults={"note": "x"})
    assert_type(await book.genres.aget_or_create(code=1), tuple[Genre, bool])
    assert_type(await book.genres.acreate(through_defaults={"note": "x"}), Genre)
    assert_type(Book.genres.through, type[Any])
    assert_type(book.genres.through, type[Any])
    await book.arefresh_from_db(fields=["title"])
    fields.ForeignKey(Writer, CASCADE)
    fields.ForeignKey(Writer, SET_NULL, null=True)
    fields.ForeignKey(Writer, "CASCADE")
    fields.ForeignKey(Writer, "DO_NOTHING")  # type: ignore[call-overload]  # not a rule


async def keys(entry: Entry) -> None:
    """A key of several columns is compared with tuples."""
    assert_type(entry.number, int)
    assert_type(entry.begins, int | None)
    assert_type(await Entry.objects.aget(pk=(1, 2)), Entry)
    entry.pk = (1, 2)
    entry.pk = None
    Entry.objects.filter(Entry.pk == (1, 2)).order_by(Entry.pk.desc())
    UniqueConstraint("a", deferrable="later")  # type: ignore[arg-type]  # "deferred" or "immediate"


def choices(book: Book) -> None:
    """Members are text with a label; what is wrong with an instance comes by field."""
    assert_type(Form.NOVEL.label, str)
    assert_type(Form.NOVEL.value, str)
    assert_type(Form("n"), Form)
    assert_type(Form.choices, list[tuple[Any, str]])
    assert_type(Form.labels, list[str])
    assert_type(book.form, str)
    book.form = Form.STORY
    Book.objects.filter(Book.form == Form.STORY)
    try:
        book.full_clean(exclude=["pages"])
    except ValidationError as error:
        assert_type(error.message_dict, dict[str, list[str]])


def expressions() -> None:
    """Class access gives typed expressions."""
    assert_type(Book.title, Column[str])
    assert_type(Book.writer.to.name, Column[str])
    assert_type(Book.writer.to.nick, Column[str | None])
    assert_type(Book.title == "x", Condition)
    assert_type(Book.pages > 3, Condition)
    Book.objects.filter(Book.title == "x", Book.pages.in_([1, 2]))
    Book.objects.filter(Book.pages == "x")  # type: ignore[arg-type]  # falls back to bool


async def queries() -> None:
    """Queries know their model, and rows in other forms know their types."""
    assert_type(Writer.objects, Manager[Writer])
    assert_type(Writer.objects.filter(name="x"), QuerySet[Writer])
    assert_type(Writer.objects.get(name="x"), Writer)
    assert_type(await Writer.objects.aget(id=1), Writer)
    assert_type(await Writer.objects.filter(name="x").afirst(), Writer | None)
    assert_type(await Writer.objects.all(), list[Writer])
    assert_type(await Writer.objects.acount(), int)
    assert_type(await Writer.objects.acreate(name="x"), Writer)
    assert_type(Writer.objects.all()[0], Writer)
    assert_type(Book.objects.long().filter(pages=1).long(), BookQuery)
    assert_type(await Book.objects.long().aget(id=1), Book)
    assert_type(Book.objects.values("title"), BaseQuery[Book, dict[str, Any]])
    assert_type(await Book.objects.values_list(Book.title, Book.pages), list[tuple[str, int]])
    assert_type(await Book.objects.values_list(Book.title, flat=True), list[str])
    assert_type(await Book.objects.values_list("title", "pages"), list[tuple[Any, ...]])
    assert_type(Book.objects.reverse(), BookQuery)
    assert_type(Book.titled, BookManager)
    assert_type(Book.titled.thick(), QuerySet[Book])
    assert_type(await Book.titled, list[Book])
    assert_type(Book.titled[0], Book)
    assert_type(Book.titled[:3], QuerySet[Book])
    Book.titled.filter(pages=1).thick()  # type: ignore[attr-defined]  # of the manager only
    assert_type(Book.both.long().filter(pages=1).long(), BookQuery)
    assert_type(await Book.both.aget(id=1), Book)
    assert_type(Book.objects.keyset(3), Page[Book])
    assert_type((await Book.objects.akeyset(3, after="x")).items[0].title, str)
    assert_type(Book.objects.explain(), str)
    assert_type(Book.objects.explain(plan=True), PlanStep)
    assert_type(await Book.objects.aexplain(plan=True), PlanStep)
    assert_type(Book.objects.in_bulk(), dict[Any, Book])
    Book.objects.annotate(long=Book.pages > 500, known=Q(writer__name="x"), loud=Loud("title"))
    async for book in Book.objects.annotate(n=Count("genres")):
        assert_type(book, Book)
    async for streamed in Book.objects.aiterator():
        assert_type(streamed, Book)


async def ctes() -> None:
    """A CTE knows what its rows are."""
    counts = CTE(Book.objects.values("writer").annotate(n=Count("id")))
    assert_type(counts, CTE[Book, dict[str, Any]])
    assert_type(await counts.objects.filter(n__gt=1), list[dict[str, Any]])
    assert_type(Writer.objects.join(counts, writer="pk"), QuerySet[Writer])
    assert_type(Book.objects.long().left_join(counts, writer="writer").long(), BookQuery)
    assert_type(CTE(Book.objects.long()).objects, BaseQuery[Book, Book])
    pairs = CTE(Book.objects.values_list(Book.title, Book.pages))
    assert_type(await pairs.objects, list[tuple[str, int]])
    series = CTE.recursive(Book.objects.filter(id=1), "sequel", depth="part")
    assert_type(series, CTE[Book, Book])
    assert_type(await series.objects.order_by("part").afirst(), Book | None)
    CTE("book")  # type: ignore[arg-type]  # not a query
    Writer.objects.join(Book.objects, id="pk")  # type: ignore[arg-type]  # not a CTE


async def searches() -> None:
    """Searching gives conditions and values."""
    vector = SearchVector("title")
    assert_type(vector.matches("x"), Condition)
    query = SearchQuery("x or y", kind="websearch")
    found = Book.objects.filter(vector.matches(query), title__search=query)
    assert_type(found.annotate(rank=SearchRank(vector, query)), BookQuery)
    SearchQuery("x", kind="raw")  # type: ignore[arg-type]  # a closed list


@transaction()
async def decorated(number: int) -> str:
    """Decorators keep signatures."""
    return str(number)


async def decorated_is_typed() -> None:
    """The decorated function is what it was."""
    assert_type(await decorated(1), str)


class BookOut(TypedDict):
    """A shape of items."""

    title: str


class BookList(FilterSet):
    """A list of books."""

    model = Book


async def list_books(books: BookList) -> Page[BookOut]:
    assert_type(books.page(BookOut), Page[BookOut])
    assert_type((await books.apage(BookOut, Book.objects.filter(pages=1))).total, int | None)
    rows = await Book.objects.akeyset(3)
    items: Page[BookOut] = rows  # type: ignore[assignment]  # rows are no items
    del items
    return await books.apage(BookOut)


class WriterOut(Shape):
    """Members that are columns."""

    id = Writer.id
    name = Writer.name
    born = Writer.born


class BookShape(Shape):
    """A member that is the shape of a related row, and one of its own."""

    id = Book.id
    title = Book.title
    writer: WriterOut
    label: str = ""


def shapes(book: BookShape, row: Book, data: dict[str, str], books: BookList) -> None:
    assert_type(books.page(BookShape), Page[BookShape])
    assert_type(book.title, str)
    assert_type(book.writer.born, dt.date | None)
    assert_type(BookShape.title, Column[str])
    assert_type(row.assign(book), list[str])
    assert_type(row.assign(data, fields=["title"]), list[str])
    Book.objects.filter(BookShape.title == "x")
    key: int = book.id
    book.title = str(key)  # pyright: ignore[reportAttributeAccessIssue]
    book.nothing()  # type: ignore[attr-defined]
    row.assign(data)  # type: ignore[call-overload]


async def made_for_tests(writer: Writer) -> None:
    """`make` gives one instance, or with `n` a list."""
    assert_type(make(Writer), Writer)
    assert_type(make(Book, title="Emma", writer=writer), Book)
    assert_type(make(Book, n=3), list[Book])
    assert_type(await amake(Book), Book)
    assert_type(await amake(Book, n=3, writer=writer), list[Book])
    make(Book, n="3")  # type: ignore[call-overload]
    make(int)  # type: ignore[type-var]
