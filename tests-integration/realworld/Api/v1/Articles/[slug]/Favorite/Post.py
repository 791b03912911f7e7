from Models.people import User
from Models.writing import Article

from ....Services.shapes import ArticleAnswer

response_model = ArticleAnswer


async def handler(article: Article, user: User):
    """Make an article one of one's favourites."""
    await article.favorited_by.aadd(user)
    return {"article": await Article.objects.seen_by(user).aget(id=article.id)}
