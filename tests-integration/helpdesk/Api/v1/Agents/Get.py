from Models.people import User
from Services.access import PeopleReader
from Services.lists import PeopleList
from Services.shapes import PersonOut
from treefold.orm import Page


async def handler(people: PeopleList, caller: PeopleReader) -> Page[PersonOut]:
    """List the people of the desk."""
    return await people.apage(PersonOut, User.objects.filter(organisation=None))
