from typing import Literal

from Models.tickets import Ticket
from Services.access import Commenter
from Services.shapes import CommentOut, NewComment
from Services.tickets import Desk


async def handler(
    ticket: Ticket, new: NewComment, caller: Commenter, desk: Desk
) -> tuple[CommentOut, Literal[201]]:
    """Write to the other side."""
    return CommentOut.of(await desk.say(ticket, caller, new)), 201
