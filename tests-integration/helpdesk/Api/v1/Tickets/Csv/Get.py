from Models.tickets import Ticket
from Services.access import Reader
from Services.exports import csv_lines
from Services.lists import TicketList
from treefold import StreamingResponse


async def handler(tickets: TicketList, caller: Reader) -> StreamingResponse:
    """Send all tickets that match, as CSV."""
    found = tickets.rows(Ticket.objects.seen_by(caller))
    return StreamingResponse(csv_lines(found), media_type="text/csv")
