"""Findings: one for each cause, with places, versions, lines and fingerprints."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from datetime import date
from itertools import permutations

import pytest
from large_locks import write_large_lock
from rule_rows import HEAD

from treefold_contract import (
    Finding,
    Lock,
    LockError,
    Settings,
    VersionFacts,
    apply_accepted,
    diff_locks,
    read_accepted,
    read_lock,
    write_acceptance,
)
from treefold_contract._text.lock_reader import parse_lock

TODAY = date(2026, 11, 29)
USER = f"""{HEAD}default v2
version v1 stable
version v2 stable

GET /v1/user
  200     json [User]

GET /v1/user/{{id:int}}
  header  X-Trace str ?
  200     json User

type User
  id      int
  role    "admin" | "member"
"""


def find_changes(old: str, new: str) -> list[Finding]:
    return diff_locks(parse_lock(old), parse_lock(new), today=TODAY)


def test_a_changed_type_is_one_finding_of_all_its_places() -> None:
    (found,) = find_changes(USER, USER.replace('"member"', '"member" | "guest"'))
    assert found.rule == "enum-value-added"
    assert found.places == (
        "GET /v1/user 200 json [].role",
        "GET /v1/user/{id} 200 json .role",
        "GET /v2/user 200 json [].role",
        "GET /v2/user/{id} 200 json .role",
    )
    assert found.versions == ("v1", "v2", "unversioned")
    assert found.witness == '[{"id": 0, "role": "guest"}]'
    assert found.line == USER.splitlines().index("type User") + 1


def test_a_type_that_a_version_changes_reaches_that_version_alone() -> None:
    new = USER.replace("\ntype", "\nGET /v2/user\n  200     json [User@v2]\n\ntype")
    new += "type User@v2\n  id      int\n"
    (found,) = find_changes(USER, new)
    assert (found.rule, found.versions) == ("field-removed", ("v2", "unversioned"))
    assert found.places == ("GET /v2/user 200 json [].role",)


def test_a_route_that_versions_inherit_is_one_finding() -> None:
    (found,) = find_changes(USER, USER.replace("X-Trace str ?", "X-Trace str"))
    assert found.places == (
        "GET /v1/user/{id} header X-Trace",
        "GET /v2/user/{id} header X-Trace",
    )
    assert found.line == USER.splitlines().index("GET /v1/user/{id:int}") + 1
    assert found.witness == "a request without header X-Trace"


def test_one_changed_type_of_a_thousand_routes_is_one_finding() -> None:
    text = write_large_lock(1000)
    changed = text.replace('"a7" | "b"', '"a7" | "b" | "c"')
    (found,) = find_changes(text, changed)
    assert found.rule == "enum-value-added"
    assert len(found.places) > 3
    assert find_changes(text, text) == []


def test_types_that_refer_to_each_other_are_walked_for_each_route() -> None:
    old = f"""{HEAD}
GET /a
  200     json A

GET /b
  200     json B

GET /c
  200     json C

type A
  b       B | null
  x       int
type B
  c       C | null
type C
  a       A | null
"""
    places = ("GET /a 200 json .x", "GET /b 200 json .c.a.x", "GET /c 200 json .a.x")
    first, second = parse_lock(old), parse_lock(old.replace("x       int", "x       str"))
    for routes in permutations(first.routes):
        (found,) = diff_locks(replace(first, routes=routes), second)
        assert (found.rule, found.places) == ("scalar-changed", places)


def test_findings_of_a_draft_are_warnings() -> None:
    draft = USER.replace("v1 stable", "v1 draft").replace("v2 stable", "v2 draft")
    found = find_changes(draft, draft.replace("X-Trace str ?", "X-Trace str"))
    assert [each.verdict for each in found] == ["warning"]


def test_a_fingerprint_depends_on_the_change_alone() -> None:
    (found,) = find_changes(USER, USER.replace('"member"', '"member" | "guest"'))
    (again,) = find_changes(USER, USER.replace('"member"', '"member" | "guest"'))
    (other,) = find_changes(USER, USER.replace('"member"', '"member" | "owner"'))
    assert found.fingerprint == again.fingerprint != other.fingerprint
    assert replace(found, advice="", line=1, witness="").fingerprint == found.fingerprint


def test_an_acceptance_is_read_as_it_was_written() -> None:
    (found,) = find_changes(USER, USER.replace('"member"', '"member" | "guest"'))
    (accepted,) = read_accepted(write_acceptance(found, " clients were told # in May "))
    assert accepted.reason == "clients were told # in May"
    (marked,), stale = apply_accepted([found], [accepted])
    assert (marked.accepted, marked.is_failure, stale) == (accepted.reason, False, [])
    assert apply_accepted([], [accepted]) == ([], [accepted])


def test_locks_of_two_versions_of_the_rules_are_not_compared() -> None:
    with pytest.raises(LockError, match="Locks must have one version of the rules, got 1 and 2"):
        diff_locks(Lock(), Lock(rules=2))


def test_notice_is_measured_in_days() -> None:
    old = f"{HEAD}version v1 stable\n"
    new = f"{HEAD}version v1 stable deprecated 2026-11-29 sunset 2027-01-01\n"
    locks = (read_lock(old), read_lock(new))
    rules = [
        [each.rule for each in diff_locks(*locks, today=TODAY, min_notice_days=days)]
        for days in (33, 34)
    ]
    assert rules == [["deprecated-added"], ["sunset-too-soon", "deprecated-added"]]


def test_a_mount_that_is_gone_is_reported() -> None:
    (found,) = diff_locks(Lock(settings=Settings(mounts=("/files",))), Lock())
    assert (found.rule, found.place) == ("route-removed", "mount /files")


# What one large user of version conversions did by accident, each as two locks.
SLIPS = {
    "a member added to an answer of an old version that refuses others": (
        USER.replace('"member"\n', '"member"\n  team    str\n'),
        "field-added-required",
    ),
    "the schema changed without the data": (
        USER.replace("  id      int", "  id      str uuid"),
        "scalar-changed",
    ),
    "an enum value sent to old clients": (
        USER.replace('"member"', '"member" | "guest"'),
        "enum-value-added",
    ),
    "a route renamed by a cherry-pick": (
        USER.replace("GET /v1/user\n", "GET /v1/users\n"),
        "segment-renamed",
    ),
    "a required header added in a dependency": (
        USER.replace("X-Trace str ?", "X-Trace str"),
        "param-required",
    ),
    "a default changed": (
        USER.replace("X-Trace str ?", 'X-Trace str = "a"'),
        "param-default-changed",
    ),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_found(slip: str) -> None:
    new, rule = SLIPS[slip]
    assert rule in [each.rule for each in find_changes(USER, new)]


def test_a_guard_that_a_route_lost_is_found_once() -> None:
    guarded = USER.replace("GET /v1/user\n", "GET /v1/user\n  guard   audit\n")
    lost = guarded.replace("\ntype", "\nGET /v2/user\n  200     json [User]\n\ntype")
    (found,) = find_changes(guarded, lost)
    assert (found.rule, found.place, found.old) == ("guard-lost", "GET /v2/user guard", "audit")
    # and in a version that is new
    new = lost.replace("\nGET /v1", "version v3 stable\n\nGET /v1", 1)
    assert [each.rule for each in find_changes(lost, new)] == ["version-added"]


SEEDED = """
import sys
from treefold_contract import diff_locks, format_json
from treefold_contract._text.lock_reader import parse_lock
print(format_json(diff_locks(*(parse_lock(text) for text in sys.argv[1:]))))
"""


def test_findings_do_not_depend_on_the_seed_of_hashes() -> None:
    new = USER.replace('"admin" | "member"', '"owner" | "guest" | "team"')
    new = new.replace("  id      int\n", "  mail    str\n  name    str\n").replace(
        "X-Trace", "X-Id"
    )
    reports = {
        subprocess.run(
            [sys.executable, "-c", SEEDED, USER, new],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2", "3")
    }
    assert len(reports) == 1


def test_versions_are_ordered_by_number() -> None:
    assert [VersionFacts(name).number for name in ("v2", "v10", "v")] == [2, 10, 0]


def describe_members(*added: str) -> list[tuple[str, str, str]]:
    """The findings of members that types of two versions gain."""
    old = f"""{HEAD}version v1 stable
version v2 stable

GET /v1/user
  200     json User

POST /v1/user
  body    json User
  204

GET /v2/user
  200     json User@v2

type User
  id      int
type User@v2
  id      int
  name    str
"""
    new = old
    for name in added:
        new = new.replace(f"type {name}\n", f"type {name}\n  age     int ?\n")
    return [(each.verdict, each.rule, each.place) for each in find_changes(old, new)]


def test_a_member_that_an_old_version_alone_gains_is_a_warning() -> None:
    found = describe_members("User")

    assert ("warning", "old-version-changed", "GET /v1/user 200 json .age") in found
    # a body may have it in every version
    assert all(rule != "old-version-changed" for _, rule, place in found if "body" in place)


def test_a_member_that_the_newest_version_gains_too_is_compatible() -> None:
    for added in (("User@v2",), ("User", "User@v2")):
        assert {verdict for verdict, _, _ in describe_members(*added)} == {"compatible"}
