"""Which dependencies of a handler run before the look-up of a cache around it.

`handler(client=Depends(api_key(...)), db=Depends(open_database))` behind a cache: `api_key` sees
the request, so it runs for every request and refuses a wrong or revoked key also where an answer
is kept. `open_database` sees nothing of it and runs only if the answer has to be made.
"""

from __future__ import annotations

from treefold_http._injection.contract import Argument, Call, Contract, Input
from treefold_http._injection.secured import read_security

_CREDENTIALS = ("header", "cookie")


def find_steps_before_cache(contract: Contract) -> tuple[int, ...]:
    """Return the numbers of the steps that run before the look-up, in their order.

    These are the dependencies that take the connection, a header field or a cookie, or that declare
    credentials; those that depend on one of them; and whatever these need themselves.
    """
    seeing: set[int] = set()
    for index, step in enumerate(contract.steps):
        # a step comes after those that it takes, so one pass finds whole chains
        if isinstance(step, Call) and _depends_on_credentials(contract, step, seeing):
            seeing.add(index)
    needed: set[int] = set()
    for index in seeing:
        _collect_needed_steps(contract, index, needed)
    return tuple(sorted(needed))


def _depends_on_credentials(contract: Contract, call: Call, credential_steps: set[int]) -> bool:
    if read_security(call.function):
        return True
    return any(_carries_credentials(contract, each, credential_steps) for each in call.arguments)


def _carries_credentials(
    contract: Contract, argument: Argument, credential_steps: set[int]
) -> bool:
    if argument.source != "step":
        return argument.source == "connection"
    number: int = argument.of
    step = contract.steps[number]
    return number in credential_steps or (isinstance(step, Input) and step.place in _CREDENTIALS)


def _collect_needed_steps(contract: Contract, index: int, needed: set[int]) -> None:
    needed.add(index)
    step = contract.steps[index]
    arguments = step.arguments if isinstance(step, Call) else ()
    for argument in arguments:
        if argument.source == "step" and argument.of not in needed:
            _collect_needed_steps(contract, argument.of, needed)
