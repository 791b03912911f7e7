from typing import Annotated

from Models.writing import Article
from Services.accounts import Viewer
from treefold import Query

from ..Services.shapes import ArticleList, ArticleSearch

response_model = ArticleList
NAMES = {
    "tag": "tags__name",
    "author": "author__username",
    "favorited": "favorited_by__username",
}


async def handler(search: Annotated[ArticleSearch, Query()], viewer: Viewer):
    """List articles, the newest first."""
    given = search.model_dump(include=set(NAMES), exclude_none=True)
    found = Article.objects.filter(**{NAMES[name]: value for name, value in given.items()})
    page = found.seen_by(viewer)[search.offset : search.offset + search.limit]
    return {"articles": await page, "articlesCount": await found.acount()}
