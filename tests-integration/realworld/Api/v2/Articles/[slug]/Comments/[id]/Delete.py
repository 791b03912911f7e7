from Models.people import User
from Models.writing import Article
from treefold import Forbidden, NotFound


async def handler(id: int, article: Article, user: User) -> None:
    """Delete one's own comment."""
    comment = await article.comments.filter(id=id).afirst()
    if comment is None:
        raise NotFound("There is no such comment")
    if comment.author_id != user.id:
        raise Forbidden("Only its author may delete a comment")
    await comment.adelete()
