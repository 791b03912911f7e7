from Models.writing import Article, Comment
from Services.accounts import Viewer

from ....Services.shapes import CommentList

response_model = CommentList


async def handler(article: Article, viewer: Viewer):
    """List the comments of an article, the newest first."""
    return {"comments": await Comment.objects.seen_by(viewer).filter(article=article)}
