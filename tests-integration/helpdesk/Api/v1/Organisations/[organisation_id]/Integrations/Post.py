from typing import Literal

from Models.people import Integration, Organisation
from Services.access import Admin, make_secret
from Services.shapes import NewSecret, SecretOut


async def handler(
    new: NewSecret, organisation: Organisation, admin: Admin
) -> tuple[SecretOut, Literal[201]]:
    """Make an API key for a program of an organisation; it is shown once."""
    secret, digest = make_secret()
    made = await Integration.objects.acreate(
        organisation=organisation, name=new.label, digest=digest
    )
    return SecretOut(made.id, secret), 201
