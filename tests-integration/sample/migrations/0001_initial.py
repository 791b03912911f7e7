"""Create table author.
Create table genre.
Create table user.
Create table book.
Create table order.
Create table book_genres.
Create table cover.
Create table review.
Create table orderline.
"""

from treefold_migrations import CreateTable, Migration
from treefold_orm import UniqueConstraint, fields

migration = Migration(
    after=[],
    operations=[
        CreateTable(
            "author",
            {
                "id": fields.BigAutoField(),
                "name": fields.CharField(max_length=120, unique=True),
            },
            model="Author",
        ),
        CreateTable(
            "genre",
            {
                "id": fields.BigAutoField(),
                "name": fields.CharField(max_length=60, unique=True),
            },
            model="Genre",
        ),
        CreateTable(
            "user",
            {
                "id": fields.BigAutoField(),
                "name": fields.CharField(max_length=80, unique=True),
                "email": fields.EmailField(),
                "password_hash": fields.CharField(max_length=200, default=""),
            },
            model="User",
        ),
        CreateTable(
            "book",
            {
                "id": fields.BigAutoField(),
                "isbn": fields.CharField(max_length=13, unique=True),
                "title": fields.CharField(max_length=200),
                "author": fields.ForeignKey("author"),
                "cents": fields.PositiveIntegerField(),
                "stock": fields.PositiveIntegerField(default=3),
            },
            model="Book",
        ),
        CreateTable(
            "order",
            {
                "id": fields.BigAutoField(),
                "user": fields.ForeignKey("user"),
                "cents": fields.PositiveIntegerField(),
                "placed_at": fields.DateTimeField(auto_now_add=True),
            },
            model="Order",
        ),
        CreateTable(
            "book_genres",
            {
                "id": fields.BigAutoField(),
                "book": fields.ForeignKey("book", "CASCADE"),
                "genre": fields.ForeignKey("genre", "CASCADE"),
            },
            model="Book_genres",
            constraints=[UniqueConstraint("book", "genre")],
        ),
        CreateTable(
            "cover",
            {
                "id": fields.BigAutoField(),
                "book": fields.OneToOneField("book", "CASCADE"),
                "image": fields.BinaryField(),
            },
            model="Cover",
        ),
        CreateTable(
            "review",
            {
                "id": fields.BigAutoField(),
                "book": fields.ForeignKey("book", "CASCADE"),
                "text": fields.TextField(),
                "stars": fields.PositiveSmallIntegerField(
                    default=5,
                    choices=[(1, "1"), (2, "2"), (3, "3"), (4, "4"), (5, "5")],
                ),
            },
            model="Review",
        ),
        CreateTable(
            "orderline",
            {
                "id": fields.BigAutoField(),
                "order": fields.ForeignKey("order", "CASCADE"),
                "book": fields.ForeignKey("book"),
                "quantity": fields.PositiveIntegerField(),
            },
            model="OrderLine",
            constraints=[UniqueConstraint("order", "book")],
        ),
    ],
)
