"""Where each security row of the HTTP and WebSocket side is tested.

Folders: `served` and `tests` are this suite and its parent, the others are `packages/*/tests`.

    S-01 to S-11  tests/test_security_routing
    S-12  tests/test_security_routing  served/test_security_answers
    S-13  tests/test_security_routing  served/test_security_framing  http/test_guard
    S-14  tests/test_security_routing  served/test_security_framing  router/test_table
    S-15  served/test_security_hosts  http/middleware/test_trusted_hosts
    S-16  served/test_security_framing  served/test_security_hosts
    S-17  tests/test_security_routing
    S-18  tests/test_security_routing
    S-19  router/test_build  router/test_scan
    S-20  tests/test_security_routing  served/test_security_framing
    S-21  tests/test_security_routing  served/test_security_framing  http/test_guard
    S-22  served/test_security_framing  http/test_header_params
    S-23  tests/test_security_routing  served/test_security_framing  http/test_guard
    S-24 to S-25  served/test_security_bodies
    S-26  served/test_security_framing  http/with_extras/test_multipart_forms
    S-27 to S-28  served/test_security_framing
    S-29 to S-30  served/test_security_bodies
    S-31  served/test_security_bodies  tests/test_request_members
    S-32  served/test_security_bodies
    S-33  served/test_security_bodies  tests/test_request_members
    S-34  served/test_security_bodies  tests/test_request_members
    S-35  served/test_security_bodies
    S-36  served/test_security_forms  http/with_extras/test_multipart
    S-37  served/test_security_forms  http/with_extras/test_multipart  http/test_part_head
    S-38  served/test_security_forms  http/with_extras/test_multipart
    S-39  served/test_security_forms  http/test_forms
    S-40  served/test_security_forms  http/test_file_names  http/test_uploads
    S-41  served/test_security_forms  http/test_spool  http/with_extras/test_multipart_forms
    S-42  served/test_security_forms  http/test_spool  http/with_extras/test_multipart_forms
    S-43  served/test_security_answers  http/test_header_fields
    S-44 to S-45  served/test_security_answers
    S-46  served/test_security_answers  http/test_disposition
    S-47  served/test_security_static  http/test_static
    S-48  served/test_security_static
    S-49  served/test_security_answers  tests/test_security_routing
    S-50 to S-51  served/test_security_edge  http/middleware/test_gzip
    S-52 to S-53  served/test_security_cache  http/test_cache_answers
    S-54  http/test_cache  http/with_extras/test_cache_redis
    S-55  served/test_security_cache  served/test_edge_sizes  http/test_cache
    S-56  served/test_security_answers  tests/test_errors  http/test_problems
    S-57  served/test_security_answers  served/test_security_edge  tests/test_errors
    S-58  http/middleware/test_cors
    S-59  served/test_security_clients  http/middleware/test_cors
    S-60 to S-61  served/test_security_edge  http/middleware/test_cors
    S-62 to S-63  served/test_security_sessions  http/middleware/test_csrf
    S-64 to S-67  served/test_security_sessions  http/middleware/test_sessions
    S-68  served/test_edge_sizes  http/middleware/test_sessions
    S-69  http/test_constant_time  http/test_auth_passwords
    S-70 to S-73  served/test_security_sockets
    S-74 to S-75  served/test_security_socket_ends
    S-76  served/test_security_sockets
    S-92  tests/test_cross_cutting_header
    S-93  served/test_rate_limit  served/test_security_edge  http/middleware/test_proxy_headers
    S-94  served/test_security_clients  http/middleware/test_rate_limit
    S-95  served/test_edge_sizes  http/middleware/test_rate_limit
    S-96  served/test_rate_limit  http/with_extras/test_rate_limit_redis
    S-97  http/middleware/test_rate_limit
    S-98 to S-99  served/test_rate_limit  http/with_extras/test_rate_limit_redis

Rulings that take the place of a row: S-30, `request.json()` parses whatever the type says; S-31,
the parser decides how deep is too deep; S-70, a socket without `Origin` is accepted, cookies or
not. What a row asks of a limit per address (S-75) belongs to the middleware that limits rates.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

LISTED = [*range(1, 77), *range(92, 100)]


def table() -> dict[int, list[str]]:
    """Give the rows of this module's docstring: number to files, none for one that is elsewhere."""
    assert __doc__
    rows: dict[int, list[str]] = {}
    lines: list[tuple[str, str, str]] = re.findall(
        r"^ {4}S-(\d+)(?: to S-(\d+))?  (.+)$", __doc__, re.MULTILINE
    )
    for first, last, places in lines:
        files: list[str] = [] if places.startswith("- ") else places.split()
        rows.update(dict.fromkeys(range(int(first), int(last or first) + 1), files))
    return rows


def path_of(file: str, repository: Path) -> Path:
    folder, _, name = file.partition("/")
    integration = repository / "tests-integration"
    known = {"served": integration / "served", "tests": integration}
    return known.get(folder, repository / "packages" / folder / "tests") / f"{name}.py"


def test_the_table_has_each_row_once() -> None:
    assert list(table()) == LISTED


@pytest.mark.parametrize("row", LISTED)
def test_a_row_is_named_where_the_table_says(row: int, repository: Path) -> None:
    for file in table()[row]:
        assert names(path_of(file, repository).read_text(), row), f"S-{row} is not in {file}"


def names(source: str, row: int) -> bool:
    """Return True if a module names the row: in a test, an id, or its docstring."""
    if re.search(rf"def test_(?:\w+_)?s{row:02}_|\bS-{row:02}\b", source):
        return True
    opening = source.partition('"""')[2].partition('"""')[0]
    spans = re.findall(r"S-(\d+) to S-(\d+)", opening)
    return any(int(first) <= row <= int(last) for first, last in spans)
