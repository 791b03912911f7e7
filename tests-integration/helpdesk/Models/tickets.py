"""Tickets and all that is said about them."""

from __future__ import annotations

from Models.people import Caller, Organisation, User
from treefold.orm import (
    CASCADE,
    SET_NULL,
    Index,
    IntegerChoices,
    Model,
    QuerySet,
    TextChoices,
    fields,
)


class Status(TextChoices):
    OPEN = "open"
    WAITING = "waiting"
    SOLVED = "solved"
    CLOSED = "closed"


class Priority(IntegerChoices):
    LOW = 1
    NORMAL = 2
    HIGH = 3
    URGENT = 4


class Tag(Model):
    name = fields.SlugField(max_length=40, unique=True)

    class Meta:
        ordering = ("name",)


class TicketQuery(QuerySet["Ticket"]):
    def seen_by(self, caller: Caller) -> TicketQuery:
        """The tickets of the caller's organisation; all of them for the desk, which has none."""
        if caller.organisation_id is None:
            return self.all()
        return self.filter(organisation_id=caller.organisation_id)


class Ticket(Model):
    subject = fields.CharField(max_length=200, help_text="What it is about, in one line")
    text = fields.TextField(max_length=20_000)
    status = fields.CharField(max_length=10, choices=Status, default=Status.OPEN)
    priority = fields.SmallIntegerField(choices=Priority, default=Priority.NORMAL)
    due_on = fields.DateField(null=True, db_index=True)
    organisation = fields.ForeignKey(Organisation, CASCADE, related_name="tickets")
    organisation_id: int
    requester = fields.ForeignKey(User, SET_NULL, null=True, related_name="requested")
    assignee = fields.ForeignKey(User, SET_NULL, null=True, related_name="assigned")
    assignee_id: int | None
    tags = fields.ManyToManyField(Tag, related_name="tickets")
    created_at = fields.DateTimeField(auto_now_add=True)
    updated_at = fields.DateTimeField(auto_now=True)
    answered_at = fields.DateTimeField(null=True)
    objects = TicketQuery.as_manager()

    class Meta:
        ordering = ("-created_at",)
        indexes = [
            Index("created_at", "id"),
            Index("updated_at", "id"),
            Index("priority", "id"),
            Index("status", "updated_at"),
            Index("subject", "id"),
        ]


class Comment(Model):
    ticket = fields.ForeignKey(Ticket, CASCADE, related_name="comments")
    author = fields.ForeignKey(User, SET_NULL, null=True, related_name="comments")
    author_id: int | None
    author_name = fields.CharField(max_length=120)
    text = fields.TextField(max_length=20_000)
    internal = fields.BooleanField(default=False)
    created_at = fields.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("created_at",)
        indexes = [Index("ticket", "internal", "created_at")]


class AuditEntry(Model):
    ticket = fields.ForeignKey(Ticket, CASCADE, related_name="audit")
    actor = fields.CharField(max_length=200, db_index=True)
    action = fields.CharField(max_length=40, db_index=True)
    changed = fields.JSONField(default=list)
    created_at = fields.DateTimeField(auto_now_add=True, db_index=True)


class Export(Model):
    """A file of tickets, which a job writes."""

    filters = fields.JSONField(default=dict)
    rows = fields.IntegerField(null=True)
    file = fields.CharField(max_length=500, null=True)
    owner = fields.ForeignKey(User, CASCADE, related_name="exports")
    created_at = fields.DateTimeField(auto_now_add=True, db_index=True)
