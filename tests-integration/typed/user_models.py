"""Models as users write them: strict pyright and strict mypy report nothing, and know the types."""

from __future__ import annotations

import datetime
from typing import TypedDict, assert_type

from treefold import Changes, Depends, NotFound, Request
from treefold.orm import (
    CTE,
    Avg,
    Count,
    F,
    FilterSet,
    Model,
    Page,
    Q,
    Reverse,
    SearchIndex,
    SearchQuery,
    SearchRank,
    SearchVector,
    Shape,
    fields,
    transaction,
)


class Author(Model):
    name = fields.CharField(max_length=80, unique=True)
    born = fields.DateField(null=True)
    books: Reverse[Book]


class Genre(Model):
    name = fields.CharField(max_length=60)
    within = fields.ForeignKey("Genre", null=True, related_name="parts")


class Book(Model):
    title = fields.CharField(max_length=200)
    author = fields.ForeignKey(Author, related_name="books")
    author_id: int
    genres = fields.ManyToManyField(Genre, related_name="books")
    cents = fields.PositiveIntegerField()
    stock = fields.PositiveIntegerField(default=3)

    class Meta:
        indexes = (SearchIndex(["title"], config="english"),)


class Shelf(FilterSet):
    model = Book
    fields = {"author__name": ["exact"], "cents": ["gte", "lte"]}  # noqa: RUF012 - as users do
    names = {"author": "author__name"}  # noqa: RUF012 - as above
    ordering = ("title",)


class BookOut(TypedDict):
    title: str
    cents: int


async def paged(shelf: Shelf) -> Page[BookOut]:
    assert_type((await shelf.apage(BookOut)).items, list[BookOut])
    return await shelf.apage(BookOut, Book.objects.filter(stock__gt=0))


async def listed(request: Request) -> list[dict[str, object]]:
    books = await Shelf(request.query).apply(Book.objects.select_related("author"))
    return [{"title": book.title, "author": book.author.name} for book in books]


async def found(id: int) -> Book:
    book = await Book.objects.select_related("author").filter(id=id).afirst()
    if book is None:
        raise NotFound("There is no such book")
    assert_type(book, Book)
    assert_type(book.title, str)
    assert_type(book.author.name, str)
    assert_type(book.author.born, datetime.date | None)
    return book


async def searched(request: Request) -> list[Book]:
    below = CTE.recursive(Genre.objects.filter(name="Fiction"), "parts", depth="level")
    titles, words = SearchVector("title"), SearchQuery(request.query.get("q") or "")
    books = Book.objects.filter(titles.matches(words), genres__in=below.objects)
    counts = CTE(Book.objects.values("author").annotate(written=Count("id")))
    ranked = books.join(counts, author="author").order_by(SearchRank(titles, words).desc())
    assert_type(await below.objects.afirst(), Genre | None)
    return await ranked[:20]


async def sold(quantity: int, book: Book = Depends(found)) -> int:
    async with transaction():
        taken = await Book.objects.filter(Q(id=book.id), stock__gte=quantity).aupdate(
            stock=F("stock") - quantity
        )
        book.cents += 1
        await book.asave()
    return taken


def plain(name: str) -> list[str]:
    author = Author.objects.get(name=name)
    return [book.title for book in author.books.all()]


async def changed(request: Request, id: int) -> Author:
    author = await Author.objects.aget(id=id)
    names: list[str] = author.assign(await request.json(), fields=["name", "born"])
    if names:
        await author.asave()
    return author


class AuthorShape(Shape):
    name = Author.name
    born = Author.born


class NewBook(Shape):
    title = Book.title
    cents = Book.cents
    author_id = Book.author_id


class BookShape(Shape):
    title = Book.title
    author: AuthorShape


async def patched(id: int, changes: Changes[NewBook]) -> BookShape:
    book = await Book.objects.only(BookShape).aget(id=id)
    assert_type(book.assign(changes), list[str])
    await book.asave()
    shape = BookShape.of(book)
    assert_type(shape.author.born, datetime.date | None)
    assert_type(shape, BookShape)
    return shape


async def added(new: NewBook) -> list[BookShape]:
    assert_type(new.title, str)
    assert_type(new.cents, int)
    book = Book()
    book.assign(new)
    await book.asave()
    return [BookShape.of(each) async for each in Book.objects.only(BookShape)]


async def counted() -> list[tuple[str, int]]:
    rows = await Book.objects.values_list(Book.title, Book.cents)
    assert_type(rows, list[tuple[str, int]])
    await Author.objects.annotate(n=Count("books")).filter(n__gt=1).acount()
    await Book.objects.aaggregate(mean=Avg("cents"))
    return rows
