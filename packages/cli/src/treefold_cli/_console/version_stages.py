"""The stage of a version, of its `version.toml`: a draft, deprecated, or after its sunset."""

from datetime import date
from typing import Any

from treefold_router import RouteTable


def make_stage_record(table: RouteTable, version: str) -> dict[str, Any]:
    """Return the keys that are set: `status`, `deprecated`, `sunset`, `successor`.

    A version without such a file, or with defaults alone, has none of them.
    """
    settings = table.layers.settings.get(version)
    if settings is None:
        return {}
    record: dict[str, Any] = {}
    if settings.status != "stable":
        record["status"] = settings.status
    if settings.deprecated:
        since = settings.deprecated
        record["deprecated"] = since.isoformat() if isinstance(since, date) else True
    if settings.sunset is not None:
        record["sunset"] = settings.sunset.isoformat()
    if settings.successor:
        record["successor"] = settings.successor
    return record


def format_stage(table: RouteTable, version: str) -> str:
    """Return the stage in words, such as `deprecated 2026-11-01, sunset 2027-06-30`; or nothing."""
    record = make_stage_record(table, version)
    parts = [record["status"]] if "status" in record else []
    if "deprecated" in record:
        since = record["deprecated"]
        parts.append("deprecated" if since is True else f"deprecated {since}")
    if "sunset" in record:
        parts.append(f"sunset {record['sunset']}")
    return ", ".join(parts)
