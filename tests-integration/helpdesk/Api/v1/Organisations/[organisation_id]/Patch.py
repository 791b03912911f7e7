from Models.people import Organisation
from Services.access import Admin
from Services.shapes import NewOrganisation, OrganisationOut
from treefold import Changes

responses = {409: "This name is taken"}


async def handler(
    organisation: Organisation, changes: Changes[NewOrganisation], admin: Admin
) -> OrganisationOut:
    """Change an organisation."""
    organisation.assign(changes)
    await organisation.asave()
    return OrganisationOut.of(organisation)
