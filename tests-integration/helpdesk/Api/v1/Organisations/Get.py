from Services.access import PeopleReader
from Services.lists import OrganisationList
from Services.shapes import OrganisationOut
from treefold.orm import Page


async def handler(organisations: OrganisationList, caller: PeopleReader) -> Page[OrganisationOut]:
    """List organisations."""
    return await organisations.apage(OrganisationOut)
