from typing import Literal

from Models.tickets import Export
from Services.access import Exporter
from Services.exports import write_export
from Services.lists import TicketList
from Services.shapes import ExportOut
from treefold.jobs import aenqueue
from treefold.orm import transaction


async def handler(wanted: TicketList, agent: Exporter) -> tuple[ExportOut, Literal[202]]:
    """Have a file written of all tickets that match."""
    async with transaction():
        export = await Export.objects.acreate(owner=agent, filters=wanted.as_json())
        await aenqueue(write_export, export.id)
    return ExportOut.of(export), 202
