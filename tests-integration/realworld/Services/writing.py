"""Articles by their slugs, and slugs by their titles."""

import re
import secrets

from Models.people import User
from Models.writing import Article
from Services.accounts import Viewer
from treefold import Forbidden, NotFound


async def article_of_path(slug: str, viewer: Viewer) -> Article:
    """Return the article of the address: what handlers get for the type `Article`."""
    article = await Article.objects.seen_by(viewer).filter(slug=slug).afirst()
    if article is None:
        raise NotFound("There is no such article")
    return article


async def own_article(article: Article, user: User) -> Article:
    """Return the article of the address; 403 unless the user wrote it."""
    if article.author_id != user.id:
        raise Forbidden("Only its author may change an article")
    return article


def slug_of(title: str) -> str:
    """Return words of a title, with an end that no other slug has."""
    words = "-".join(re.findall("[a-z0-9]+", title.lower()))
    return f"{words[:200]}-{secrets.token_hex(4)}".lstrip("-")
