from dataclasses import dataclass
from typing import Literal

from Models.tickets import Status, Ticket
from Services.mail import mail_server
from Services.shapes import CommentOut, NewComment
from Services.tickets import Desk
from treefold import Depends, NotFound
from treefold.orm import transaction


@dataclass
class Mail:
    sender: str
    ticket_id: int
    content: NewComment


async def handler(
    mail: Mail, desk: Desk, server: None = Depends(mail_server)
) -> tuple[CommentOut, Literal[201]]:
    """Take the mail by which a customer replies."""
    tickets = Ticket.objects.select_related("requester").filter(requester__email=mail.sender)
    ticket = await tickets.filter(id=mail.ticket_id).afirst()
    if ticket is None or ticket.requester is None:
        raise NotFound("There is no such ticket of this sender")
    ticket.status = Status.OPEN
    async with transaction():
        await desk.save(ticket, "reopened", ["status"])
        comment = await desk.say(ticket, ticket.requester, mail.content)
    return CommentOut.of(comment), 201
