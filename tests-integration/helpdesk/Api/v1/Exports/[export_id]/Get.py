from Models.tickets import Export
from Services.access import Exporter
from treefold import FileResponse, NotFound

responses = {200: {"media_type": "text/csv", "description": "The tickets"}}


async def handler(export_id: int, agent: Exporter) -> FileResponse:
    """Download an export that is written."""
    export = await Export.objects.filter(owner=agent, id=export_id).afirst()
    if export is None or export.file is None:
        raise NotFound("There is no such file, or not yet")
    return FileResponse(export.file, filename=f"tickets-{export.id}.csv")
