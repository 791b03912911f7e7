"""Names of test cases."""

import re


def stable_repr(value: object) -> str:
    """Return the `repr` without addresses: processes that share the tests agree on their names."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
