from Services import news
from treefold import EventStream


async def handler(request):
    return EventStream(news.listen())
