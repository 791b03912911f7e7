from Models.tickets import Tag, Ticket
from Services.access import Triager
from Services.shapes import TagOut
from Services.tickets import Desk
from treefold.orm import transaction


async def handler(ticket: Ticket, wanted: list[TagOut], agent: Triager, desk: Desk) -> list[TagOut]:
    """Replace the tags."""
    names = {tag.name for tag in wanted}
    async with transaction():
        await Tag.objects.abulk_create([Tag(name=n) for n in names], ignore_conflicts=True)
        await ticket.tags.aset(Tag.objects.filter(name__in=names))
        await desk.note(ticket, "tagged", sorted(names))
    return [TagOut.of(tag) for tag in await ticket.tags.all()]
