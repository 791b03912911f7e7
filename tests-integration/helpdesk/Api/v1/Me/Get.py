from typing import Annotated

from Models.people import Caller
from Services.access import anyone
from Services.shapes import CallerOut
from treefold import Depends, Request


async def handler(request: Request, caller: Annotated[Caller, Depends(anyone)]) -> CallerOut:
    """Say who asks, and what they may do."""
    principal = request.principal
    assert principal is not None
    return CallerOut(caller.name, principal.source, sorted(principal.scopes))
