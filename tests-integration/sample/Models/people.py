"""Who buys."""

from typing import TypedDict

from treefold.orm import Model, fields


class User(Model):
    name = fields.CharField(max_length=80, unique=True)
    email = fields.EmailField()
    password_hash = fields.CharField(max_length=200, default="")


class Named(TypedDict):
    """What everybody may know of a user."""

    id: int
    name: str
