"""Organisations, the people of them and of the desk, and what they log in with."""

from __future__ import annotations

from treefold.orm import CASCADE, Model, TextChoices, fields


class Plan(TextChoices):
    BASIC = "basic"
    PREMIUM = "premium"


class Role(TextChoices):
    ADMIN = "admin"
    AGENT = "agent"
    CUSTOMER = "customer"


class Organisation(Model):
    name = fields.CharField(max_length=120, unique=True)
    plan = fields.CharField(max_length=10, choices=Plan, default=Plan.BASIC)
    note = fields.TextField(max_length=2000, null=True)
    created_at = fields.DateTimeField(auto_now_add=True, db_index=True)


class User(Model):
    """A customer has an organisation, an agent has none."""

    name = fields.CharField(max_length=120, db_index=True)
    email = fields.EmailField(max_length=254, unique=True)
    password_hash = fields.CharField(max_length=200)
    role = fields.CharField(max_length=10, choices=Role)
    active = fields.BooleanField(default=True)
    organisation = fields.ForeignKey(Organisation, CASCADE, null=True, related_name="people")
    organisation_id: int | None

    @property
    def user_id(self) -> int | None:
        """The user to whom belongs what the caller writes."""
        key: int = self.id
        return key


class AccessToken(Model):
    user = fields.ForeignKey(User, CASCADE, related_name="tokens")
    label = fields.CharField(max_length=60)
    digest = fields.CharField(max_length=64, unique=True)


class Integration(Model):
    """A program of an organisation, which sends an API key."""

    organisation = fields.ForeignKey(Organisation, CASCADE, related_name="integrations")
    organisation_id: int
    name = fields.CharField(max_length=120)
    digest = fields.CharField(max_length=64, unique=True)

    @property
    def user_id(self) -> int | None:
        return None


Caller = User | Integration
