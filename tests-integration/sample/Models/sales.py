"""What was sold to whom."""

from __future__ import annotations

from Models.catalogue import Book
from Models.people import User
from treefold.orm import Model, Reverse, UniqueConstraint, fields


class Order(Model):
    user = fields.ForeignKey(User, related_name="orders")
    cents = fields.PositiveIntegerField()
    placed_at = fields.DateTimeField(auto_now_add=True)
    lines: Reverse[OrderLine]

    class Meta:
        ordering = ("-id",)


class OrderLine(Model):
    order = fields.ForeignKey(Order, related_name="lines", on_delete="CASCADE")
    book = fields.ForeignKey(Book, related_name="+")
    quantity = fields.PositiveIntegerField()

    class Meta:
        constraints = (UniqueConstraint(["order", "book"]),)
