from Models.people import User
from Models.writing import Article

from ....Services.shapes import ArticleAnswer

response_model = ArticleAnswer


async def handler(article: Article, user: User):
    """Take an article out of one's favourites."""
    await article.favorited_by.aremove(user)
    return {"article": await Article.objects.seen_by(user).aget(id=article.id)}
