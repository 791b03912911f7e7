"""Mail of the desk: messages to people, and messages that the mail server delivers."""

import hmac
from email.message import EmailMessage
from mailbox import Maildir
from typing import Annotated

from Models.tickets import Ticket
from settings import DeskSettings
from treefold import Depends, Header, Request, Unauthorized, secured
from treefold.auth import Principal, identify
from treefold.jobs import job


class Mailer:
    """Leaves messages in the folder from which the mail server of the desk takes them."""

    def __init__(self, settings: DeskSettings) -> None:
        self._sender = settings.sender
        self._box = Maildir(settings.outgoing)

    def send(self, to: str, subject: str, text: str) -> None:
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = self._sender, to, subject
        message.set_content(text)
        self._box.add(message)


@job(attempts=5)
async def tell_requester(ticket_id: int, text: str, mailer: Mailer = Depends()) -> None:
    """Mail an answer to the requester, unless a program asked."""
    ticket = await Ticket.objects.select_related("requester").aget(id=ticket_id)
    if ticket.requester is not None:
        mailer.send(ticket.requester.email, f"Re: {ticket.subject}", text)


async def remind_desk(
    ticket_id: int, mailer: Mailer = Depends(), settings: DeskSettings = Depends()
) -> None:
    """Mail the desk about a ticket without an answer in time."""
    late = await Ticket.objects.filter(id=ticket_id, answered_at=None).afirst()
    if late is not None:
        mailer.send(settings.sender, f"Not answered: {late.subject}", late.text)


@secured(
    {"type": "apiKey", "in": "header", "name": "X-Mail-Signature"},
    name="mailServer",
    scopes=["mail:deliver"],
)
async def mail_server(
    request: Request,
    settings: DeskSettings,
    signature: Annotated[str, Header(alias="X-Mail-Signature")] = "",
) -> None:
    """Verify that the mail server has signed a request."""
    expected = hmac.digest(settings.mail_secret.encode(), await request.body(), "sha256").hex()
    if not hmac.compare_digest(signature.encode(), expected.encode()):
        raise Unauthorized("The signature of the mail server is missing or wrong")
    identify(request, Principal("mail", "mailServer", scopes=["mail:deliver"]))
