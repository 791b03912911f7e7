"""Who buys."""

from treefold.orm import Model, fields


class User(Model):
    name = fields.CharField(max_length=80, unique=True)
    email = fields.EmailField()
    password_hash = fields.CharField(max_length=200, default="")
