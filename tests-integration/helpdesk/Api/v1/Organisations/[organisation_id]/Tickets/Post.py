from typing import Literal

from Models.people import Organisation
from Models.tickets import Ticket
from Services.access import Triager
from Services.shapes import NewTicket, TicketOut
from Services.tickets import Desk


async def handler(
    new: NewTicket, organisation: Organisation, agent: Triager, desk: Desk
) -> tuple[TicketOut, Literal[201]]:
    """Open a ticket for an organisation, as after a call."""
    ticket = Ticket(organisation=organisation)
    ticket.assign(new)
    return await desk.open(ticket), 201
