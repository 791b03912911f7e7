"""Names of devices on Windows, reserved in every folder and with any extension.

A tree with such a name cannot be checked out on Windows, so projects and segments must not use one.
"""

_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))]
)


def is_windows_device_name(name: str) -> bool:
    """Return True if a name without extension is that of a Windows device, in any case."""
    return name.lower() in _DEVICES
