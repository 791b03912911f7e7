from Models.tickets import Ticket
from Services.shapes import TicketOut


async def handler(ticket: Ticket) -> TicketOut:
    return TicketOut.of(ticket)
