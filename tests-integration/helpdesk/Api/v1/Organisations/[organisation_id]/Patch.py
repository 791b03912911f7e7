from Models.people import Organisation
from Services.access import Admin
from Services.shapes import NewOrganisation, OrganisationOut
from treefold import Changes


async def handler(
    organisation: Organisation, changes: Changes[NewOrganisation], admin: Admin
) -> OrganisationOut:
    """Change an organisation."""
    organisation.assign(changes)
    await organisation.asave()
    return OrganisationOut.of(organisation)
