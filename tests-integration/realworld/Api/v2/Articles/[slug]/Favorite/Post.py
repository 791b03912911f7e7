from Api.v2.Services.shapes import ArticleAnswer
from Models.people import User
from Models.writing import Article

response_model = ArticleAnswer


async def handler(article: Article, user: User):
    """Make an article one of one's favourites."""
    await article.favorited_by.aadd(user)
    return {"article": await Article.objects.seen_by(user).aget(id=article.id)}
