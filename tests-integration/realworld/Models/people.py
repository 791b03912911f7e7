from __future__ import annotations

from treefold.orm import Model, Q, QuerySet, Reverse, fields


class UserQuery(QuerySet["User"]):
    def seen_by(self, viewer: User | None) -> UserQuery:
        """Load `following`: whether the viewer follows the user."""
        return self.annotate(following=Q(followers=viewer.id if viewer else 0))


class User(Model):
    username = fields.CharField(max_length=60, unique=True)
    email = fields.EmailField(unique=True)
    password_hash = fields.CharField(max_length=200)
    bio = fields.TextField(null=True)
    image = fields.CharField(max_length=2000, null=True)
    followed = fields.ManyToManyField("self", related_name="followers")
    followers: Reverse[User]
    following: bool
    token: str
    objects = UserQuery.as_manager()
