"""Names that Windows gives to devices, in every folder and with any extension.

A tree that holds one cannot be checked out there, so neither a project nor a segment is called so.
"""

_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))]
)


def is_device(name: str) -> bool:
    """Say whether a file or folder name without extension is one of a device, in any case."""
    return name.lower() in _DEVICES
