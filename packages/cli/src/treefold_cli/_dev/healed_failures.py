"""What a restart has healed: files and the errors of their second import, passed from one process
to the next in a variable.
"""

import json
import os
from collections.abc import Collection, Mapping

_VARIABLE = "TREEFOLD_DEV_HEALED"


def take_healed_failures() -> set[tuple[str, str]]:
    """Remove the variable of the previous process, and return what it has passed on."""
    text = os.environ.pop(_VARIABLE, "")
    try:
        return {(str(file), str(error)) for file, error in json.loads(text or "[]")}
    except (TypeError, ValueError):
        return set()  # the variable comes from an unrelated process


def add_healed_failures(
    environment: Mapping[str, str], healed: Collection[tuple[str, str]]
) -> dict[str, str]:
    """Return the variables of the next process, to which these failures are passed on."""
    others = {name: value for name, value in environment.items() if name != _VARIABLE}
    return others | ({_VARIABLE: json.dumps([*healed])} if healed else {})
