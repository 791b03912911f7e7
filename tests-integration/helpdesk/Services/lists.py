"""What lists may be asked for."""

from Models.people import Organisation, User
from Models.tickets import AuditEntry, Comment, Ticket
from treefold.orm import FilterSet


class TicketList(FilterSet):
    model = Ticket
    fields = {
        "status": ["exact", "in"],
        "priority": ["exact", "gte"],
        "tags__name": ["exact", "in"],
        "assignee": ["exact", "isnull"],
        "organisation": ["exact"],
        "due_on": ["lte", "isnull"],
        "created_at": ["gte", "lt"],
        "subject": ["icontains"],
    }
    names = {"tag": "tags__name", "created": "created_at"}
    ordering = ("created_at", "updated_at", "priority", "subject")
    page_size = 20
    unindexed = ("subject__icontains",)


class OrganisationList(FilterSet):
    model = Organisation
    fields = {"name": ["exact", "istartswith"], "plan": ["exact"]}
    ordering = ("name", "created_at")
    total = True
    unindexed = ("name__istartswith", "plan")


class PeopleList(FilterSet):
    model = User
    fields = {"email": ["exact"], "active": ["exact"]}
    ordering = ("name",)
    unindexed = ("active",)


class CommentList(FilterSet):
    model = Comment
    fields = {"author": ["exact"]}
    ordering = ("created_at",)
    unindexed = ("created_at",)  # the index of the comments of a ticket serves it


class AuditList(FilterSet):
    model = AuditEntry
    fields = {"actor": ["exact"], "action": ["exact", "in"], "created_at": ["gte", "lt"]}
    ordering = ("created_at",)
