from typing import Literal

from Models.people import Organisation
from Services.access import Admin
from Services.shapes import NewOrganisation, OrganisationOut

responses = {409: "This name is taken"}


async def handler(new: NewOrganisation, admin: Admin) -> tuple[OrganisationOut, Literal[201]]:
    """Add an organisation."""
    organisation = Organisation()
    organisation.assign(new)
    await organisation.asave()
    return OrganisationOut.of(organisation), 201
