"""The rows of the table of rules, as pairs of locks, each with what both directions say.

A type row is judged in a body and in an answer, or in a query (`text`). An expectation is the rule
and its verdict; `-` says that nothing is found there.
"""

from __future__ import annotations

from typing import NamedTuple

HEAD = "treefold contract 1 rules 1\n"


class Expected(NamedTuple):
    """The rule and the verdict of one direction: in a request, and in an answer."""

    request: str
    response: str


class TypeRow(NamedTuple):
    """Two types, or the members of two records (`closed` and `|` between lines)."""

    number: int
    old: str
    new: str
    forward: Expected
    back: Expected
    alphabet: str = "json"


class RouteRow(NamedTuple):
    """Two sets of lines of a route, or two locks; the gravest finding of both directions."""

    number: int
    old: str
    new: str
    forward: str
    back: str


def both(expected: str) -> Expected:
    return Expected(expected, expected)


E = Expected
TYPE_ROWS = [
    TypeRow(
        30,
        "record\n  a int",
        "record\n  a int\n  b int",
        E("B field-added-required", "C field-added-required"),
        E("W field-removed-ignored", "B field-removed"),
    ),
    TypeRow(
        31,
        "record\n  a int",
        "record\n  a int\n  b int ?",
        both("C field-added-optional"),
        E("W field-removed-ignored", "C field-removed-optional"),
    ),
    TypeRow(
        32,
        "record closed\n  a int\n  b int ?",
        "record closed\n  a int",
        E("B field-removed", "C field-removed-optional"),
        both("C field-added-optional"),
    ),
    TypeRow(
        33,
        "record\n  a int\n  b int",
        "record\n  a int",
        E("W field-removed-ignored", "B field-removed"),
        E("B field-added-required", "C field-added-required"),
    ),
    TypeRow(
        34,
        "record\n  a int\n  b int ?",
        "record\n  a int",
        E("W field-removed-ignored", "C field-removed-optional"),
        both("C field-added-optional"),
    ),
    TypeRow(
        35,
        "record\n  a int ?",
        "record\n  a int",
        E("B field-required", "C field-required"),
        E("C field-optional", "B field-optional"),
    ),
    TypeRow(
        36,
        "record\n  a int",
        "record\n  a int ?",
        E("C field-optional", "B field-optional"),
        E("B field-required", "C field-required"),
    ),
    TypeRow(
        37,
        "record\n  a int",
        "record\n  b int",
        both("B field-renamed"),
        both("B field-renamed"),
    ),
    TypeRow(
        38,
        "record\n  a int = 1",
        "record\n  a int = 2",
        both("W field-default-changed"),
        both("W field-default-changed"),
    ),
    TypeRow(
        39,
        "record\n  a int = 1",
        "record\n  a int ? = 1",
        E("-", "B field-default-unsent"),
        E("-", "C field-required"),
    ),
    TypeRow(
        40,
        "record\n  a int",
        "record closed\n  a int",
        E("B record-closed", "C record-closed"),
        both("C record-opened"),
    ),
    TypeRow(
        41,
        "int",
        "any",
        E("C type-forgotten", "B type-forgotten"),
        E("B type-declared", "C type-declared"),
    ),
    TypeRow(
        42,
        "any",
        "[str]",
        E("B type-declared", "C type-declared"),
        E("C type-forgotten", "B type-forgotten"),
    ),
    TypeRow(
        43,
        "int",
        "float",
        E("C int-to-float", "B int-to-float"),
        E("B float-to-int", "C float-to-int"),
    ),
    TypeRow(
        44,
        "float",
        "int",
        E("B float-to-int", "C float-to-int"),
        E("C int-to-float", "B int-to-float"),
    ),
    TypeRow(45, "int", "str", both("C scalar-to-str"), both("B str-to-scalar"), alphabet="text"),
    TypeRow(46, "int", "str", both("B scalar-changed"), both("B scalar-changed")),
    TypeRow(46, "bool", "int", both("B scalar-changed"), both("B scalar-changed")),
    TypeRow(46, "float", "str decimal", both("B scalar-changed"), both("B scalar-changed")),
    TypeRow(
        47,
        "str",
        "str uuid",
        E("B format-added", "C format-added"),
        E("C format-dropped", "B format-dropped"),
    ),
    TypeRow(
        48,
        "str email",
        "str",
        E("C format-dropped", "B format-dropped"),
        E("B format-added", "C format-added"),
    ),
    TypeRow(49, "str date", "str datetime", both("B format-changed"), both("B format-changed")),
    TypeRow(
        49,
        "str datetime-naive",
        "str datetime-aware",
        both("B format-changed"),
        both("B format-changed"),
    ),
    TypeRow(
        49, "str date", "str datetime", both("C format-changed"), both("B format-changed"), "text"
    ),
    TypeRow(50, "int", "[int]", both("B one-to-list"), both("B list-to-one")),
    TypeRow(
        51,
        "[{str: int}]",
        "[{str: float}]",
        E("C int-to-float", "B int-to-float"),
        E("B float-to-int", "C float-to-int"),
    ),
    TypeRow(52, "(int, int)", "(int,)", both("B tuple-length"), both("B tuple-length")),
    TypeRow(52, "(int, str)", "(str, int)", both("B tuple-order"), both("B tuple-order")),
    TypeRow(
        53,
        "record\n  a int",
        "{str: any}",
        E("C record-to-map", "B record-to-map"),
        E("B map-to-record", "C map-to-record"),
    ),
    TypeRow(
        54,
        "int",
        "int | null",
        E("C null-added", "B null-added"),
        E("B null-removed", "C null-removed"),
    ),
    TypeRow(
        55,
        "[str] | null",
        "[str]",
        E("B null-removed", "C null-removed"),
        E("C null-added", "B null-added"),
    ),
    TypeRow(
        56,
        "record\n  a int ?",
        "record\n  a int | null",
        both("B null-instead-of-absent"),
        both("B null-instead-of-absent"),
    ),
    TypeRow(57, "bytes base64", "bytes hex", both("B bytes-encoding"), both("B bytes-encoding")),
    TypeRow(57, "bytes hex", "bytes raw", both("B bytes-encoding"), both("B bytes-encoding")),
    TypeRow(
        58,
        "int lax",
        "int",
        E("B coercion-narrowed", "C coercion-narrowed"),
        both("C coercion-widened"),
    ),
    TypeRow(
        60,
        '"a" | "b"',
        '"a" | "b" | "c"',
        E("C enum-value-added", "B enum-value-added"),
        E("B enum-value-removed", "C enum-value-removed"),
    ),
    TypeRow(
        60,
        '"a" | ...',
        '"a" | "b" | ...',
        both("C enum-value-added"),
        both("C enum-value-removed"),
    ),
    TypeRow(
        61,
        "1 | 2",
        "1",
        E("B enum-value-removed", "C enum-value-removed"),
        E("C enum-value-added", "B enum-value-added"),
    ),
    TypeRow(
        62,
        '"a" | "b"',
        '"a" | "c"',
        both("B enum-value-renamed"),
        both("B enum-value-renamed"),
    ),
    TypeRow(
        63,
        '"a" | "b"',
        '"a" | "b" | ...',
        E("C enum-opened", "B enum-opened"),
        E("B enum-closed", "C enum-closed"),
    ),
    TypeRow(
        64,
        "str",
        '"a" | "b"',
        E("B enum-closed", "C enum-closed"),
        E("C enum-opened", "B enum-opened"),
    ),
    TypeRow(65, "1 | 2", '"1" | "2"', both("B enum-base"), both("B enum-base")),
    TypeRow(65, "1 | 2", '"1" | "2"', both("-"), both("-"), alphabet="text"),
    TypeRow(
        66,
        '"a" (A) | "b"',
        '"a" (ALPHA) | "b"',
        both("S enum-member-name"),
        both("S enum-member-name"),
    ),
    TypeRow(66, '"a" | "b"', '"b" | "a"', both("-"), both("-")),
    TypeRow(67, '"a"', '"b"', both("B const-changed"), both("B const-changed")),
    TypeRow(
        68,
        "int | str",
        "int | str | bool",
        E("C union-member-added", "B union-member-added"),
        E("B union-member-removed", "C union-member-removed"),
    ),
    TypeRow(
        68,
        "int | str | ...",
        "int | str | bool | ...",
        E("C union-member-added", "C union-member-added"),
        E("B union-member-removed", "C union-member-removed"),
    ),
    TypeRow(
        69,
        "int | [int] | str",
        "int | str",
        E("B union-member-removed", "C union-member-removed"),
        E("C union-member-added", "B union-member-added"),
    ),
    TypeRow(
        70,
        "Cat | Dog",
        "Cat | Dog tag kind",
        E("B union-tag-added", "C union-tag-added"),
        E("C union-tag-removed", "C union-tag-removed"),
    ),
    TypeRow(
        71,
        "Cat | Dog tag kind",
        "Cat | Dog tag sort",
        E("B union-tag-renamed", "C union-tag-renamed"),
        E("B union-tag-renamed", "C union-tag-renamed"),
    ),
    TypeRow(72, "Cat | Dog", "Dog | Cat", E("W union-order", "-"), E("W union-order", "-")),
    TypeRow(
        73,
        "int",
        "int | [int]",
        E("C union-member-added", "B union-member-added"),
        E("B union-member-removed", "C union-member-removed"),
    ),
    TypeRow(
        74,
        "int",
        "int >=1",
        E("B bound-added", "C bound-added"),
        E("C bound-removed", "W bound-removed"),
    ),
    TypeRow(
        74,
        "[int] items ..5",
        "[int] items ..3",
        E("B bound-tightened", "C bound-tightened"),
        E("C bound-loosened", "W bound-loosened"),
    ),
    TypeRow(
        75,
        "str len 1..80",
        "str len 1..90",
        E("C bound-loosened", "W bound-loosened"),
        E("B bound-tightened", "C bound-tightened"),
    ),
    TypeRow(
        76,
        "str",
        'str match "^a"',
        E("B pattern-added", "C pattern-added"),
        E("C pattern-removed", "W pattern-removed"),
    ),
    TypeRow(
        77,
        'str match "^[0-9]{4}$"',
        'str match "^\\\\d{4}$"',
        E("B pattern-changed", "W pattern-changed"),
        E("B pattern-changed", "W pattern-changed"),
    ),
]
DEFINITIONS = """
type Cat
  kind    "cat" = "cat"
  sort    "cat" = "cat"
type Dog
  kind    "dog" = "dog"
  sort    "dog" = "dog"
"""

ME = "GET /v1/user/me\n  200     json any"
BY_ID = "GET /v1/user/{id:int}\n  200     json any"
BY_NAME = "GET /v1/user/{name}\n  200     json any"
DELETE = "DELETE /v1/user/{name}\n  204"
V1 = "version v1 stable\n"
V2 = "version v2 stable\n"
OVER = " deprecated 2026-01-01 sunset 2026-11-01"
COMING = " deprecated 2026-01-01 sunset 2027-11-01"
V2_SAME = f"{V1}{V2}\n{ME}\n"
V2_OTHER = f"{V1}{V2}\n{ME}\n\nGET /v2/user/me\n  200     json int"

LOCK_ROWS = [
    RouteRow(1, f"{V1}\n{ME}\n\n{BY_ID}", f"{V1}\n{ME}", "B route-removed", "C route-added"),
    RouteRow(
        2,
        f"{V1}\n{ME}\n\n{BY_ID}\n  deprecated 2026-01-01 sunset 2027-01-01",
        f"{V1}\n{ME}",
        "B route-removed-early",
        "C route-added",
    ),
    RouteRow(
        3,
        f"{V1}\n{ME}\n\n{BY_ID}\n  deprecated 2026-01-01 sunset 2026-11-01",
        f"{V1}\n{ME}",
        "C route-removed-sanctioned",
        "C route-added",
    ),
    RouteRow(
        4, f"{V1}\n{ME}", f"{V1}\n{ME}\n\nPOST /v1/order\n  204", "C route-added", "B route-removed"
    ),
    RouteRow(
        5, f"{V1}\n{BY_NAME}", f"{V1}\n{BY_NAME}\n\n{ME}", "B route-shadows", "B route-unshadowed"
    ),
    RouteRow(
        6,
        f"{V1}\n{BY_NAME}\n\n{DELETE}",
        f"{V1}\n{BY_NAME}\n\n{DELETE}\n\n{ME}",
        "B route-shadows-methods",
        "B route-unshadowed",
    ),
    RouteRow(
        7,
        f"{V1}\n{BY_ID}",
        f"{V1}\n{BY_ID}\n\n{ME}",
        "C route-shadows-nothing",
        "B route-unshadowed",
    ),
    RouteRow(
        8, f"{V1}\n{BY_NAME}\n\n{ME}", f"{V1}\n{BY_NAME}", "B route-unshadowed", "B route-shadows"
    ),
    RouteRow(
        9,
        f"{V1}\n{ME}",
        f"{V1}\n{ME.replace('user', 'users')}",
        "B segment-renamed",
        "B segment-renamed",
    ),
    RouteRow(
        10,
        f"{V1}\n{BY_ID}",
        f"{V1}\n{BY_ID.replace('id', 'number')}",
        "S path-param-renamed",
        "S path-param-renamed",
    ),
    RouteRow(11, "automatic head\n", "", "B auto-head-off", "-"),
    RouteRow(11, "automatic options\n", "", "W auto-options-off", "-"),
    RouteRow(12, V2_SAME, f"{V1}\n{ME}", "B version-removed", "C version-added"),
    RouteRow(
        12,
        V2_SAME.replace("v2 stable", f"v2 stable{OVER}"),
        f"{V1}\n{ME}",
        "C version-removed-sanctioned",
        "C version-added",
    ),
    RouteRow(
        13,
        f"default v1\n{V2_OTHER}",
        f"default v2\n{V2_OTHER}",
        "C unversioned-moved",
        "B unversioned-moved",
    ),
    RouteRow(13, f"default v1\n{V2_SAME}", f"default v2\n{V2_SAME}", "-", "-"),
    RouteRow(14, f"default v1\n{V2_SAME}", V2_SAME, "B unversioned-removed", "-"),
    RouteRow(82, "errors problem\n", "errors plain\n", "B error-format", "B error-format"),
    RouteRow(
        93,
        f"{V1}{V2}\n{ME}\n  guard audit\n",
        f"{V1}{V2}\n{ME}\n  guard audit\n\nGET /v2/user/me\n  200     json any",
        "F guard-lost",
        "C guard-added",
    ),
    RouteRow(
        94,
        f"{V1}\n{ME}",
        f"version v1 stable{COMING}\n\n{ME}",
        "C deprecated-added",
        "C deprecated-removed",
    ),
    RouteRow(98, V1, "version v1 draft\n", "B status-draft", "C status-stable"),
    RouteRow(
        108,
        "WEBHOOK /paid\n  body    json int\n  204",
        "WEBHOOK /paid\n  body    json float\n  204",
        "B int-to-float",
        "C float-to-int",
    ),
    RouteRow(
        108,
        "WEBHOOK /paid\n  200     json int",
        "WEBHOOK /paid\n  200     json float",
        "C int-to-float",
        "B float-to-int",
    ),
]

ROUTE_ROWS = [
    RouteRow(15, "", "query a int", "B param-added-required", "W param-removed"),
    RouteRow(15, "", "header a int ?", "C param-added-optional", "W param-removed"),
    RouteRow(16, "cookie a str ?", "", "W param-removed", "C param-added-optional"),
    RouteRow(17, "query a int = 1", "query a int", "B param-required", "C param-optional"),
    RouteRow(
        18,
        "query a int = 1",
        "query a int = 2",
        "W param-default-changed",
        "W param-default-changed",
    ),
    RouteRow(19, "query a int ?", "header a int ?", "B param-moved", "B param-moved"),
    RouteRow(20, "header X-A int", "header x-a int", "-", "-"),
    RouteRow(20, "query A int", "query a int", "B param-case", "B param-case"),
    RouteRow(20, "cookie A int ?", "cookie a int ?", "W param-case", "W param-case"),
    RouteRow(
        21, "query a int", "query a int alias b", "C param-alias-added", "B param-alias-removed"
    ),
    RouteRow(22, "query a int", "query a [int]", "C param-one-to-list", "B param-list-to-one"),
    RouteRow(23, "", "opaque", "W input-opaque", "W input-opaque"),
    RouteRow(24, "body json int ?", "", "W body-removed", "C body-optional"),
    RouteRow(25, "", "body json int", "B body-required", "W body-removed"),
    RouteRow(25, "body json int ?", "body json int", "B body-required", "C body-optional"),
    RouteRow(
        26,
        "body json int",
        "body json int\n  body form any",
        "C body-media-added",
        "B body-media-removed",
    ),
    RouteRow(
        27,
        "body json int lenient",
        "body json int",
        "B body-media-checked",
        "C body-media-unchecked",
    ),
    RouteRow(28, "limit body 9", "limit body 8", "B max-body-lowered", "C max-body-raised"),
    RouteRow(28, "", "limit file 8", "B max-body-lowered", "C max-body-raised"),
    RouteRow(29, "", "file photo file", "B file-part-added-required", "W param-removed"),
    RouteRow(29, "", "file photo file ?", "C file-part-added-optional", "W param-removed"),
    RouteRow(78, "200 json int", "201 json int", "B success-changed", "B success-changed"),
    RouteRow(78, "200 json int\n  202", "202", "B success-removed", "W success-added"),
    RouteRow(41, "200 any", "200 json int", "C type-declared", "B type-forgotten"),
    RouteRow(41, "2XX any", "200 json int", "C type-declared", "B type-forgotten"),
    RouteRow(41, "2XX any", "200 json int\n  202", "C type-declared", "B type-forgotten"),
    RouteRow(41, "2XX any\n  404 problem", "404 problem", "B success-removed", "W success-added"),
    RouteRow(79, "200 json int", "200 json int\n  202", "W success-added", "B success-removed"),
    RouteRow(80, "", "404 problem", "C error-added", "C error-removed"),
    RouteRow(81, "400 problem", "400 json int", "B error-shape", "B error-shape"),
    RouteRow(81, "400 problem int", "400 problem float", "B int-to-float", "C float-to-int"),
    RouteRow(
        83,
        '404 problem = "/gone"',
        '404 problem = "/gone"\n  404 problem = "/lost"',
        "W problem-type-added",
        "C problem-type-removed",
    ),
    RouteRow(
        84, "200 json int\n  200 text/csv", "200 json int", "B media-removed", "C media-added"
    ),
    RouteRow(84, "200 text/csv", "200 text/html", "B media-removed", "B media-removed"),
    RouteRow(85, "200 json [int]", "200 ndjson int", "B stream-kind", "B stream-kind"),
    RouteRow(85, "200 events", "200 file", "B stream-kind", "B stream-kind"),
    RouteRow(86, "200\n  200 header X-A int", "200", "B header-removed", "C header-added"),
    RouteRow(
        86,
        "200\n  200 cookie a int",
        "200\n  200 cookie a int ?",
        "B header-optional",
        "C header-required",
    ),
    RouteRow(87, "offers etag", "", "W conditional-dropped", "C offer-added"),
    RouteRow(87, "offers ranges", "", "W ranges-dropped", "C offer-added"),
    RouteRow(88, "", "auth bearer", "B auth-added", "F auth-removed"),
    RouteRow(
        89, "auth bearer\n  auth key", "auth bearer", "B auth-option-removed", "F auth-option-added"
    ),
    RouteRow(90, "auth bearer", "auth bearer\n  auth none", "F auth-removed", "B auth-added"),
    RouteRow(91, "auth bearer a", "auth bearer a b", "B scope-added", "F scope-removed"),
    RouteRow(92, "auth bearer", "auth key:X-Key", "B auth-scheme", "B auth-scheme"),
    RouteRow(93, "guard audit", "", "F guard-lost", "C guard-added"),
    RouteRow(94, "", "deprecated 2026-11-01", "C deprecated-added", "C deprecated-removed"),
    RouteRow(95, "", "deprecated", "W deprecated-undated", "C deprecated-removed"),
    RouteRow(
        96,
        "deprecated 2026-11-01 sunset 2027-06-30",
        "deprecated 2026-11-01 sunset 2027-05-30",
        "B sunset-earlier",
        "C sunset-later",
    ),
    RouteRow(
        97,
        "deprecated 2026-11-01",
        "deprecated 2026-11-01 sunset 2026-11-28",
        "B sunset-too-soon",
        "C sunset-later",
    ),
    RouteRow(99, "operation list", "operation listUsers", "S operation-id", "S operation-id"),
    RouteRow(100, "limit timeout 30", "limit timeout 20", "W timeout-lowered", "C limit-raised"),
    RouteRow(100, "", "limit rate 100", "W rate-lowered", "C limit-raised"),
    RouteRow(102, "in json int", "in json float", "C int-to-float", "B float-to-int"),
    RouteRow(102, "out json int", "out json float", "B int-to-float", "C float-to-int"),
    RouteRow(
        102, "out json int", "out json int | str", "B union-member-added", "C union-member-removed"
    ),
    RouteRow(103, "subprotocol chat", "", "B subprotocol-removed", "C subprotocol-added"),
    RouteRow(
        104,
        "200 events",
        "200 events\n  200 event paid int",
        "C event-added",
        "W event-removed",
    ),
    RouteRow(
        105,
        "200 events\n  200 event paid int",
        "200 events\n  200 event paid float",
        "B int-to-float",
        "C float-to-int",
    ),
    RouteRow(
        106,
        "in json int",
        "in json int\n  query a int",
        "B param-added-required",
        "W param-removed",
    ),
    RouteRow(107, "", "close 4001", "W socket-close-added", "C socket-close-removed"),
]
NAMED_ROWS = [
    # row 59: another name for the same type; the version of a name is none
    RouteRow(59, "User", "Person", "S type-renamed", "S type-renamed"),
    RouteRow(59, "User", "User@v2", "-", "-"),
]
NO_FACT = {101}
"""Rows about what a lock does not hold: summaries, examples, files."""
