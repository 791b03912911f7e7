from Models.writing import Tag

from ..Services.shapes import TagList


async def handler() -> TagList:
    """List the tags of articles."""
    tags = Tag.objects.filter(articles__isnull=False)
    return TagList(tags=await tags.values_list("name", flat=True))
