from Models.tickets import AuditEntry, Ticket
from Services.access import Noter
from Services.lists import AuditList
from Services.shapes import AuditOut
from treefold.orm import Page


async def handler(ticket: Ticket, entries: AuditList, agent: Noter) -> Page[AuditOut]:
    """List the actions on a ticket, with their callers."""
    return await entries.apage(AuditOut, AuditEntry.objects.filter(ticket=ticket))
