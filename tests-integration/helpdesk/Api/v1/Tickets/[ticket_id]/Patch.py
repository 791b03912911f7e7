from Models.tickets import Ticket
from Services.access import Opener
from Services.shapes import TicketChange, TicketOut
from Services.tickets import Desk
from treefold import Changes


async def handler(
    ticket: Ticket, changes: Changes[TicketChange], caller: Opener, desk: Desk
) -> TicketOut:
    """Say it better."""
    return await desk.save(ticket, "edited", ticket.assign(changes))
