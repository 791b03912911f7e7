from Models.writing import Article

from ...Services.shapes import ArticleAnswer

response_model = ArticleAnswer


async def handler(article: Article):
    """Return an article."""
    return {"article": article}
