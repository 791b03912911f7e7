from Models.people import User
from Models.writing import Article, Comment

from ....Services.shapes import CommentAnswer, CommentPost

response_model = CommentAnswer
status_code = 201


async def handler(body: CommentPost, article: Article, user: User):
    """Comment on an article."""
    made = await article.comments.acreate(body=body.comment.body, author=user)
    return {"comment": await Comment.objects.seen_by(user).aget(id=made.id)}
