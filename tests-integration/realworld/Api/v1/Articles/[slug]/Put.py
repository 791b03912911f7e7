from Models.writing import Article
from Services.writing import own_article, slug_of
from treefold import Depends

from ...Services.shapes import ArticleAnswer, ArticleUpdate

response_model = ArticleAnswer


async def handler(body: ArticleUpdate, article: Article = Depends(own_article)):
    """Change one's own article; a new title gives it a new slug."""
    title = body.article.get("title", article.title)
    if title != article.title:
        article.slug = slug_of(title)
    article.assign(body.article, fields=["title", "description", "body"])
    await article.asave()
    return {"article": article}
