from Models.people import Organisation
from Services.access import PeopleReader
from Services.shapes import OrganisationOut


async def handler(organisation: Organisation, caller: PeopleReader) -> OrganisationOut:
    return OrganisationOut.of(organisation)
