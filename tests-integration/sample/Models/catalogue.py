"""What is for sale, and what is said about it."""

from __future__ import annotations

from treefold.orm import FilterSet, Model, Reverse, fields


class Author(Model):
    name = fields.CharField(max_length=120, unique=True)


class Genre(Model):
    name = fields.CharField(max_length=60, unique=True)


class Book(Model):
    isbn = fields.CharField(max_length=13, unique=True)
    title = fields.CharField(max_length=200)
    author = fields.ForeignKey(Author, related_name="books")
    genres = fields.ManyToManyField(Genre, related_name="books")
    cents = fields.PositiveIntegerField()
    stock = fields.PositiveIntegerField(default=3)
    reviews: Reverse[Review]

    class Meta:
        ordering = ("id",)


class Cover(Model):
    """A table of its own: a list of books reads no pictures."""

    book = fields.OneToOneField(Book, related_name="cover", on_delete="CASCADE")
    image = fields.BinaryField()


class Review(Model):
    book = fields.ForeignKey(Book, related_name="reviews", on_delete="CASCADE")
    text = fields.TextField()
    stars = fields.PositiveSmallIntegerField(default=5, choices=range(1, 6))


class Shelf(FilterSet):
    """What a customer may ask of the catalogue: nothing else in the address reaches a query."""

    model = Book
    fields = {  # noqa: RUF012 - read-only by contract
        "author__name": ("exact",),
        "genres__name": ("exact",),
        "title": ("exact", "icontains"),
        "cents": ("gte", "lte"),
    }
    names = {"author": "author__name", "genre": "genres__name"}  # noqa: RUF012 - as above
    ordering = ("title", "cents")
    page_size = 20
    total = True
    # the whole catalogue is a few pages of the database
    unindexed = ("title", "title__icontains", "cents", "cents__gte", "cents__lte")
