"""What a page may show instead of what was printed, and what it may not."""

from datetime import date

import pytest
from compare import is_printed

TODAY = date(2028, 2, 29)


def matches(shown: str, printed: str) -> bool:
    return is_printed(shown.splitlines(), printed.splitlines(), today=TODAY)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("since 2026-11-23", "since 2028-02-29"),
        ("since 2026-11-23", "since 2028-03-01"),  # the other side of midnight
        ("born 1929-10-21", "born 1929-10-21"),
        ("born 2026-11-23", "born 2026-11-23"),
        ("at 2026-11-23T10:00:00Z", "at 2028-02-29T23:59:59.123+05:30"),
        ("Date: Mon, 23 Nov 2026 10:00:00 GMT", "Date: Tue, 29 Feb 2028 00:00:00 GMT"),
        ("took 1.2ms", "took 340 ms"),
        ("4 passed in 3.46s", "4 passed in 12s"),
        ("200 id=loan-7", "200 id=0af3"),
        ("peer 127.0.0.1:50123", "peer 127.0.0.1:41987"),
        ("held by process 7 on workshop", "held by process 4711 on laptop.lan"),
        ('role "ann" does not exist', 'user "root" does not exist'),
        ("in /home/ann/shop", "in /var/folders/x/shop"),
        ("===== 1 passed =====", "=== 1 passed ==="),
        ("a ... c", "a b c"),
        ("a\n...\nd", "a\nb\nc\nd"),
    ],
)
def test_a_value_of_the_same_shape_is_accepted(shown: str, printed: str) -> None:
    assert matches(shown, printed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("since 2026-11-23", "since 2028-02-20"),  # neither today nor the day of the page
        ("since 2026-11-23", "since 29.02.2028"),
        ("since 2026-11-23", "since 2028-2-29"),
        ("since 2026-11-23", "since 2028-13-29"),
        ("since 2026-11-23", "since -"),
        ("since -", "since 2028-02-29"),
        ("since 2026-11-23", "since 2028-02-29T10:00:00"),
        ("born 1929-10-21", "born 1929-10-22"),
        ("at 2026-11-23T10:00:00Z", "at 2028-02-29"),
        ("at 2026-11-23T10:00:00Z", "at 2028-02-29 10:00:00Z"),
        ("at 2026-11-23T10:00:00Z", "at 2028-02-29T25:00:00Z"),
        ("Date: Mon, 23 Nov 2026 10:00:00 GMT", "Date: 2028-02-29T00:00:00Z"),
        ("took 1.2ms", "took 340"),
        ("took 1.2ms", "took long"),
        ("4 passed in 3.46s", "5 passed in 3.46s"),
        ("200 id=loan-7", "200"),
        ("at http://127.0.0.1:8000", "at http://127.0.0.1:8001"),
        ("peer 127.0.0.1:50123", "peer 10.0.0.1:50123"),
        ("held by process 7 on workshop", "held by process 7"),
        ("in /home/ann/shop", "in shop"),
        ("GET /v1/tool", "GET /tmp/tool"),
        ("a ... c", "a b d"),
        ("a", "a\nb"),
        ("a\nb", "a"),
    ],
)
def test_a_wrong_value_or_shape_is_refused(shown: str, printed: str) -> None:
    assert not matches(shown, printed)


def test_other_lines_may_stand_between_those_of_a_log() -> None:
    printed = ["booted in 3 ms", "GET /v1/a 200", "GET /v1/b 200"]
    assert is_printed(["booted in 12 ms", "GET /v1/b 200"], printed, among=True)
    assert not is_printed(["GET /v1/b 200", "GET /v1/a 200"], printed, among=True)
