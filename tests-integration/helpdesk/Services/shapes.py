"""Bodies and responses."""

from dataclasses import dataclass
from typing import Literal

from Models.people import Organisation, User
from Models.tickets import AuditEntry, Comment, Export, Tag, Ticket
from treefold.orm import Shape


@dataclass
class Credentials:
    email: str
    password: str


@dataclass
class CallerOut:
    name: str
    source: str
    scopes: list[str]


@dataclass
class NewSecret:
    label: str


@dataclass
class SecretOut:
    id: int
    secret: str


class NewOrganisation(Shape):
    name = Organisation.name
    plan = Organisation.plan
    note = Organisation.note


class OrganisationRef(Shape):
    id = Organisation.id
    name = Organisation.name


class OrganisationOut(OrganisationRef):
    plan = Organisation.plan
    note = Organisation.note
    created_at = Organisation.created_at


class NewPerson(Shape):
    name = User.name
    email = User.email
    password: str


class NewAgent(NewPerson):
    role: Literal["agent", "admin"] = "agent"


class PersonChange(Shape):
    name = User.name
    email = User.email
    active = User.active


class PersonRef(Shape):
    id = User.id
    name = User.name


class PersonOut(PersonRef):
    email = User.email
    role = User.role
    active = User.active


class TagOut(Shape):
    name = Tag.name


class NewTicket(Shape):
    subject = Ticket.subject
    text = Ticket.text
    priority = Ticket.priority


class TicketChange(Shape):
    subject = Ticket.subject
    text = Ticket.text


class Triage(Shape):
    status = Ticket.status
    priority = Ticket.priority
    due_on = Ticket.due_on
    assignee_id = Ticket.assignee_id


class TicketRow(Shape):
    id = Ticket.id
    subject = Ticket.subject
    status = Ticket.status
    priority = Ticket.priority
    due_on = Ticket.due_on
    created_at = Ticket.created_at
    updated_at = Ticket.updated_at
    organisation: OrganisationRef
    assignee: PersonRef | None
    tags: list[TagOut]


class TicketOut(TicketRow):
    text = Ticket.text
    answered_at = Ticket.answered_at
    requester: PersonRef | None


class NewComment(Shape):
    text = Comment.text


class CommentOut(Shape):
    id = Comment.id
    author_name = Comment.author_name
    text = Comment.text
    created_at = Comment.created_at


class AuditOut(Shape):
    actor = AuditEntry.actor
    action = AuditEntry.action
    changed: list[str]
    created_at = AuditEntry.created_at


class ExportOut(Shape):
    id = Export.id
    rows = Export.rows
    created_at = Export.created_at
