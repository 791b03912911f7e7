"""Tickets as CSV: lines for a stream, and the file that a job writes."""

import csv
import io
from collections.abc import AsyncIterator

from Models.tickets import Export, Ticket, TicketQuery
from Services.lists import TicketList
from settings import DeskSettings
from treefold import Depends
from treefold.jobs import job

COLUMNS = ("id", "subject", "status", "priority", "organisation", "created")


async def csv_lines(tickets: TicketQuery) -> AsyncIterator[str]:
    """Yield a line of column names, and one for each ticket."""
    yield csv_line(*COLUMNS)
    async for each in tickets.select_related("organisation").aiterator():
        facts = each.id, each.subject, each.status, each.priority
        yield csv_line(*facts, each.organisation.name, each.created_at.isoformat())


def csv_line(*values: object) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(values)
    return line.getvalue()


@job(attempts=3)
async def write_export(export_id: int, settings: DeskSettings = Depends()) -> None:
    """Write the file of an export into the folder that the settings name."""
    export = await Export.objects.aget(id=export_id)
    wanted = TicketList(export.filters)
    lines = [line async for line in csv_lines(wanted.rows(Ticket.objects.all()))]
    settings.exports.mkdir(parents=True, exist_ok=True)
    path = settings.exports / f"tickets-{export.id}.csv"
    path.write_text("".join(lines), encoding="utf-8", newline="")
    export.file, export.rows = str(path), len(lines) - 1
    await export.asave()
