from Models.tickets import Comment, Ticket
from Services.access import Noter
from Services.lists import CommentList
from Services.shapes import CommentOut
from treefold.orm import Page


async def handler(ticket: Ticket, notes: CommentList, agent: Noter) -> Page[CommentOut]:
    """List the notes of agents, which the customer does not see."""
    return await notes.apage(CommentOut, Comment.objects.filter(ticket=ticket, internal=True))
