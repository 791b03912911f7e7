"""Usage read from logs, and findings that no caller can meet."""

from __future__ import annotations

import json
from typing import Any

import pytest

from treefold_contract import (
    Finding,
    LockError,
    apply_usage,
    diff_locks,
    format_text,
    read_usage,
)
from treefold_contract._text.lock_reader import parse_lock

HEAD = "treefold contract 1 rules 1\nversion v1 stable\n"
OLD = f"""{HEAD}
GET /v1/book
  query   page  int ?
  query   sort  str ?
  200     any

GET /v1/book/{{id:int}}
  200     any

GET /v1/pen
  200     any
"""


def line(*routes: Any, since: str = "2026-11-01T00:00:00Z", until: str = "2026-11-01T01") -> str:
    record = {"from": since, "to": until, "routes": routes}
    return "usage " + json.dumps(record, separators=(",", ":"))


BOOK = ["GET /v1/book", 5, [["bearer:7", 3], ["other", 2]], [["page", 4]]]
ONE = ["GET /v1/book/{isbn}", 1, [["other", 1]], []]


def judge(new: str, *routes: Any, old: str = OLD) -> dict[str, str]:
    usage = read_usage([f"[INFO] {line(*routes)}"])
    found = apply_usage(diff_locks(parse_lock(old), parse_lock(new)), usage)
    return {each.rule: "note" if each.is_unused else each.verdict for each in found}


@pytest.mark.parametrize(
    "form",
    [
        "[INFO] {}",
        "2026-11-01 host shop[7]: [INFO] {}\n",
        "[INFO] {} id=abc",
    ],
)
def test_lines_of_a_text_log_are_read(form: str) -> None:
    usage = read_usage([form.replace("{}", line(BOOK))])
    route = usage.find_route("GET /v1/book")
    assert route is not None
    assert (route.count, route.callers, route.query) == (
        5,
        {"bearer:7": 3, "other": 2},
        {"page": 4},
    )


def test_lines_of_a_json_log_are_read() -> None:
    entry = json.dumps({"level": "INFO", "message": line(BOOK)})
    assert read_usage(["noise", f"shop | {entry}"]).find_route("GET /v1/book") is not None


def test_lines_add_up_over_hours_and_processes() -> None:
    later = line(BOOK, ONE, since="2026-11-02T00", until="2026-11-02T01")
    usage = read_usage([f"[INFO] {later}", f"[INFO] {line(BOOK)}", f"[INFO] {line(BOOK)}"])
    assert (usage.since, usage.until) == ("2026-11-01T00:00:00Z", "2026-11-02T01")
    book, one = usage.find_route("GET /v1/book"), usage.find_route("GET /v1/book/{id}")
    assert book is not None
    assert (book.count, book.last, book.callers["bearer:7"]) == (15, "2026-11-02T01", 9)
    assert one is not None
    assert one.last == "2026-11-02T01"


@pytest.mark.parametrize(
    "text",
    [
        f'[INFO] POST /v1/x 200 - {{"a":"{line(BOOK)}"}}',
        f'[INFO] POST /v1/x 200 - "[INFO] {line(BOOK)}"',
        "[INFO] usage {",
        '[INFO] usage {"from":1,"to":2,"routes":[]}',
        '[INFO] usage {"from":"a","to":"b","routes":7}',
        '{"message":"a usage {}"}',
        '{"message":["usage {"]}',
        '["usage {"]',
        "",
    ],
)
def test_lines_that_only_quote_usage_are_skipped(text: str) -> None:
    with pytest.raises(LockError, match=r"^No line of the log is one of usage; set usage = true"):
        read_usage([text])


def test_a_removed_route_that_nobody_called_is_a_note() -> None:
    new = OLD.replace("GET /v1/book/{id:int}\n  200     any\n\n", "")
    assert judge(new, BOOK) == {"route-removed": "note"}
    assert judge(new, BOOK, ONE) == {"route-removed": "breaking"}


def test_a_renamed_route_is_judged_by_its_old_name() -> None:
    new = OLD.replace("/v1/book/{id:int}", "/v1/tome/{id:int}")
    assert judge(new, BOOK) == {"segment-renamed": "note"}
    assert judge(new, BOOK, ONE) == {"segment-renamed": "breaking"}


def test_a_query_name_that_nobody_sent_is_a_note() -> None:
    new = OLD.replace("  query   sort  str ?\n", "").replace("page  int ?", "page  int <=9 ?")
    assert judge(new, BOOK) == {"bound-added": "breaking", "param-removed": "note"}
    assert judge(new, ONE) == {"bound-added": "note", "param-removed": "note"}


def test_a_name_that_becomes_required_breaks_those_who_do_not_send_it() -> None:
    new = OLD.replace("sort  str ?", "sort  str")
    assert judge(new, BOOK) == {"param-required": "breaking"}
    assert judge(new, ONE) == {"param-required": "note"}


def test_a_removed_version_that_nobody_called_is_a_note() -> None:
    old = OLD.replace("version v1 stable\n", "version v1 stable\nversion v2 stable\n")
    new = OLD.replace("version v1", "version v2").replace("/v1/", "/v2/")
    assert judge(new, BOOK, old=old) == {"version-removed": "breaking"}
    assert judge(new, ["GET /v2/book", 1, [], []], old=old) == {"version-removed": "note"}
    assert judge(new, ["GET /v10/book", 1, [], []], old=old) == {"version-removed": "note"}


def test_weaker_security_is_never_a_note() -> None:
    old = OLD.replace("GET /v1/pen\n", "GET /v1/pen\n  auth    bearer\n")
    assert judge(OLD, BOOK, old=old) == {"auth-removed": "weaker"}


def test_a_route_that_a_new_one_hides_is_no_note() -> None:
    new = OLD.replace("GET /v1/pen\n", "GET /v1/book/7\n  200     any\n\nGET /v1/pen\n")
    verdicts = judge(new, BOOK)
    assert verdicts.pop("route-shadows") == "breaking"


def test_notes_are_counted_apart_and_do_not_fail() -> None:
    new = OLD.replace("GET /v1/book/{id:int}\n  200     any\n\n", "")
    found: list[Finding] = apply_usage(
        diff_locks(parse_lock(OLD), parse_lock(new)), read_usage([f"[INFO] {line(BOOK)}"])
    )
    assert [each.is_failure for each in found] == [False]
    assert format_text(found).split("\n") == [
        "1 note",
        "note route-removed: GET /v1/book/{id} (v1, no caller sent this)",
    ]


def test_usage_of_a_version_is_moved_for_a_comparison_of_both() -> None:
    usage = read_usage([f"[INFO] {line(BOOK, ['GET /v10/x', 1, [], []])}"]).move_version("v1", "v2")
    assert list(usage.routes) == ["GET /v2/book"]
