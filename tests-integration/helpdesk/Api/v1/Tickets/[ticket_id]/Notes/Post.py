from typing import Literal

from Models.tickets import Ticket
from Services.access import Noter
from Services.shapes import CommentOut, NewComment
from Services.tickets import Desk


async def handler(
    ticket: Ticket, new: NewComment, agent: Noter, desk: Desk
) -> tuple[CommentOut, Literal[201]]:
    """Write to other agents."""
    return CommentOut.of(await desk.say(ticket, agent, new, internal=True)), 201
