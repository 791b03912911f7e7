from Models.people import Organisation, User
from Services.access import PeopleReader
from Services.lists import PeopleList
from Services.shapes import PersonOut
from treefold.orm import Page


async def handler(
    organisation: Organisation, people: PeopleList, caller: PeopleReader
) -> Page[PersonOut]:
    """List the people of an organisation."""
    return await people.apage(PersonOut, User.objects.filter(organisation=organisation))
