"""What routes about tickets share: the rows of the address, and what the desk does with tickets."""

import datetime as dt
from collections.abc import Iterable

from Models.people import Caller, Organisation
from Models.tickets import AuditEntry, Comment, Status, Ticket
from Services.access import Reader
from Services.mail import remind_desk
from Services.shapes import NewComment, TicketOut
from settings import DeskSettings
from treefold import Connection, Depends, NotFound
from treefold.jobs import alater
from treefold.orm import transaction


async def visible_ticket(ticket_id: int, caller: Reader) -> Ticket:
    """Return the ticket of the address: what handlers get for the type `Ticket`."""
    seen = Ticket.objects.seen_by(caller).only(TicketOut)
    ticket = await seen.filter(id=ticket_id).afirst()
    if ticket is None:
        raise NotFound("There is no such ticket")
    return ticket


async def organisation_of_path(organisation_id: int) -> Organisation:
    """Return the organisation of the address: what handlers get for the type `Organisation`."""
    organisation = await Organisation.objects.filter(id=organisation_id).afirst()
    if organisation is None:
        raise NotFound("There is no such organisation")
    return organisation


class Desk:
    """Does things with tickets, and notes the caller in the audit trail."""

    def __init__(self, connection: Connection, settings: DeskSettings) -> None:
        self._connection = connection
        self._answer_time = dt.timedelta(hours=settings.answer_hours)

    async def open(self, ticket: Ticket) -> TicketOut:
        """Save a new ticket, and remind the desk of it if it has no answer in time."""
        async with transaction():
            await ticket.asave()
            await self.note(ticket, "opened")
            key = f"ticket {ticket.id}"
            await alater(remind_desk, delay=self._answer_time, unique=key)(ticket.id)
        return await TicketOut.aof(ticket)

    async def save(self, ticket: Ticket, action: str, changed: Iterable[str]) -> TicketOut:
        """Save a ticket that was changed."""
        async with transaction():
            await ticket.asave()
            await self.note(ticket, action, changed)
        return await TicketOut.aof(ticket)

    async def say(
        self, ticket: Ticket, caller: Caller, new: NewComment, *, internal: bool = False
    ) -> Comment:
        """Add a comment, or an internal note."""
        comment = Comment(ticket=ticket, author_name=caller.name, internal=internal)
        comment.author_id = caller.user_id
        comment.assign(new)
        async with transaction():
            await comment.asave()
            await self.note(ticket, "noted" if internal else "commented")
        return comment

    async def note(self, ticket: Ticket, action: str, changed: Iterable[str] = ()) -> None:
        """Note an action of the caller of the request."""
        principal = self._connection.principal
        actor = principal.key if principal else "unknown"
        await AuditEntry.objects.acreate(
            ticket=ticket, actor=actor, action=action, changed=list(changed)
        )


async def close_solved(settings: DeskSettings = Depends()) -> int:
    """Close the tickets that were solved some time ago."""
    before = dt.datetime.now(dt.UTC) - dt.timedelta(days=settings.close_after_days)
    solved = Ticket.objects.filter(status=Status.SOLVED, updated_at__lt=before)
    return await solved.aupdate(status=Status.CLOSED)
