from typing import Annotated

from Models.people import User
from Models.writing import Article
from treefold import Query

from ...Services.shapes import ArticleList, Page

response_model = ArticleList


async def handler(page: Annotated[Page, Query()], user: User):
    """List articles of the users that one follows, the newest first."""
    found = Article.objects.filter(author__followers=user)
    shown = await found.seen_by(user).akeyset(page.limit, after=page.after)
    return {"articles": shown.items, "next": shown.next}
