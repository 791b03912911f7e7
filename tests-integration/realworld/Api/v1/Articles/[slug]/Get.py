from Api.v1.Services.shapes import ArticleAnswer
from Models.writing import Article

response_model = ArticleAnswer


async def handler(article: Article):
    """Return an article."""
    return {"article": article}
