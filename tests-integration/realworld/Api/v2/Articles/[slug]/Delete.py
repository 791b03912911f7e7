from Models.writing import Article
from Services.writing import own_article
from treefold import Depends


async def handler(article: Article = Depends(own_article)) -> None:
    """Delete one's own article."""
    await article.adelete()
