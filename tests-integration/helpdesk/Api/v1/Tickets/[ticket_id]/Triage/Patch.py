from Models.tickets import Ticket
from Services.access import Triager
from Services.shapes import TicketOut, Triage
from Services.tickets import Desk
from treefold import Changes

responses = {409: "There is no such assignee"}


async def handler(
    ticket: Ticket, changes: Changes[Triage], agent: Triager, desk: Desk
) -> TicketOut:
    """Set status, priority, day and assignee."""
    return await desk.save(ticket, "triaged", ticket.assign(changes))
