from Models.tickets import Comment, Ticket
from Services.lists import CommentList
from Services.shapes import CommentOut
from treefold.orm import Page


async def handler(ticket: Ticket, comments: CommentList) -> Page[CommentOut]:
    """List the comments of both sides."""
    return await comments.apage(CommentOut, Comment.objects.filter(ticket=ticket, internal=False))
