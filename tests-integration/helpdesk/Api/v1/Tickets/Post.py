from typing import Literal

from Models.tickets import Ticket
from Services.access import Opener
from Services.shapes import NewTicket, TicketOut
from Services.tickets import Desk


async def handler(new: NewTicket, caller: Opener, desk: Desk) -> tuple[TicketOut, Literal[201]]:
    """Open a ticket of one's own organisation."""
    ticket = Ticket(organisation_id=caller.organisation_id, requester_id=caller.user_id)
    ticket.assign(new)
    return await desk.open(ticket), 201
