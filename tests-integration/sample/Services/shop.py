"""The shop's data: shared by all versions, never copied with one."""

from dataclasses import dataclass, field
from itertools import count
from typing import TypedDict


@dataclass
class Book:
    isbn: str
    title: str
    author: str
    cents: int
    stock: int = 3
    cover: bytes = b""
    reviews: list[str] = field(default_factory=list)


@dataclass
class User:
    id: int
    name: str
    email: str
    password_hash: str = ""


@dataclass
class Order:
    id: int
    user_id: int
    lines: dict[str, int] = field(default_factory=dict)
    cents: int = 0


class Named(TypedDict):
    """What everybody may know of a user."""

    id: int
    name: str


class SoldOut(Exception):
    """There are not as many copies as somebody wants; `extensions.py` says how it is answered."""

    def __init__(self, isbn: str, left: int) -> None:
        super().__init__(isbn, left)
        self.isbn = isbn
        self.left = left


books: dict[str, Book] = {}
users: dict[int, User] = {}
orders: dict[int, Order] = {}
user_ids = count(1)
order_ids = count(1)


def stock_shelves():
    """Fill the shelves when the shop opens."""
    for isbn, title, author, cents in (
        ("9780441478125", "The Left Hand of Darkness", "Le Guin", 1299),
        ("9780061054884", "The Dispossessed", "Le Guin", 1450),
        ("9780553293357", "Foundation", "Asimov", 999),
    ):
        books.setdefault(isbn, Book(isbn, title, author, cents))
    if not users:
        add_user("ada", "ada@example.org", "")


def add_user(name: str, email: str, password_hash: str) -> User:
    user = User(next(user_ids), name, email, password_hash)
    users[user.id] = user
    return user


def place_order(user: User, lines: dict[str, int]) -> Order:
    """Take copies from the shelves, all or none; SoldOut names the book that is short."""
    for isbn, quantity in lines.items():
        left = books[isbn].stock if isbn in books else 0
        if left < quantity:
            raise SoldOut(isbn, left)
    order = Order(next(order_ids), user.id, lines)
    for isbn, quantity in lines.items():
        books[isbn].stock -= quantity
        order.cents += books[isbn].cents * quantity
    orders[order.id] = order
    return order


async def close():
    """Clear the shelves when it closes."""
    books.clear()
    users.clear()
    orders.clear()
