from typing import Literal

from Models.people import AccessToken
from Services.access import Person, make_secret
from Services.shapes import NewSecret, SecretOut


async def handler(new: NewSecret, person: Person) -> tuple[SecretOut, Literal[201]]:
    """Make a token of one's own; it is shown once."""
    secret, digest = make_secret()
    made = await AccessToken.objects.acreate(user=person, label=new.label, digest=digest)
    return SecretOut(made.id, secret), 201
