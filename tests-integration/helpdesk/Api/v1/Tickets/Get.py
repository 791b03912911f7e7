from Models.tickets import Ticket
from Services.access import Reader
from Services.lists import TicketList
from Services.shapes import TicketRow
from treefold.orm import Page


async def handler(tickets: TicketList, caller: Reader) -> Page[TicketRow]:
    """List tickets, the newest first."""
    return await tickets.apage(TicketRow, Ticket.objects.seen_by(caller))
