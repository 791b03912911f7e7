from Models.people import User
from Models.writing import Article, Tag
from Services.writing import slug_of
from treefold.orm import transaction

from ..Services.shapes import ArticleAnswer, ArticlePost

response_model = ArticleAnswer
status_code = 201


async def handler(body: ArticlePost, user: User):
    """Write an article."""
    new = body.article
    names = list(dict.fromkeys(new.tag_list))
    async with transaction():
        article = await Article.objects.acreate(
            slug=slug_of(new.title),
            title=new.title,
            description=new.description,
            body=new.body,
            author=user,
        )
        await Tag.objects.abulk_create([Tag(name=n) for n in names], ignore_conflicts=True)
        await article.tags.aset(Tag.objects.filter(name__in=names))
    return {"article": await Article.objects.seen_by(user).aget(id=article.id)}
