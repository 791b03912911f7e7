from Services import news
from treefold import EventStream


async def handler(request) -> EventStream:
    return EventStream(news.listen())
