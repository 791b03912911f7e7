from typing import Literal

from Models.tickets import Status, Ticket
from Services.access import Triager
from Services.mail import tell_requester
from Services.shapes import CommentOut, NewComment
from Services.tickets import Desk
from treefold.jobs import aenqueue
from treefold.orm import transaction


async def handler(
    ticket: Ticket, new: NewComment, agent: Triager, desk: Desk
) -> tuple[CommentOut, Literal[201]]:
    """Answer the customer, by mail too, and wait for them."""
    async with transaction():
        comment = await desk.say(ticket, agent, new)
        ticket.status, ticket.answered_at = Status.WAITING, comment.created_at
        await desk.save(ticket, "answered", ["status"])
        await aenqueue(tell_requester, ticket.id, comment.text)
    return CommentOut.of(comment), 201
