"""RateLimit in memory: buckets, bounds, races, what a client is told (S-71, S-93 to S-99, D-17)."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from collections.abc import Callable
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application
from treefold_http.middleware import RateLimit
from treefold_http.middleware._gcra import MemoryTable, Rate, parse_rate

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer, Exchange, Socket

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]
Talk = Callable[..., "Socket"]

OK = "async def handler(request):\n    return 'ok'\n"
TREE = {
    "Api/v1/Login/Post.py": OK,
    "Api/v1/Login/Get.py": OK,
    "Api/v1/Login/Ws.py": "async def handler(websocket):\n    await websocket.accept()\n",
    "Api/v1/User/[id]/Get.py": OK,
    "Api/v1/Refuse/Get.py": "from treefold_http import Unauthorized\n"
    "async def handler(request):\n    raise Unauthorized('no')\n",
    "Api/v1/Body/Post.py": "max_body = 2\n"
    "async def handler(request):\n    return len(await request.body())\n",
}


def application(project: Project, entries: str = "RateLimit('3/hour')", **more: Any) -> Application:
    code = f"from treefold_http.middleware import *\nmiddlewares = [{entries}]\n"
    return project({**TREE, "Middleware/__init__.py": code}, **more)


def peer(address: str | None) -> dict[str, Any]:
    return {"client": None if address is None else (address, 1)}


@pytest.mark.parametrize(
    ("text", "burst", "rate"),
    [
        ("100/hour", None, Rate(100, 36_000_000_000)),
        ("100/h", 10, Rate(10, 36_000_000_000)),
        (" 5 / Min ", None, Rate(5, 12_000_000_000)),
        ("1/s", None, Rate(1, 1_000_000_000)),
        ("10/15seconds", 3, Rate(3, 1_500_000_000)),
        ("1/2 days", None, Rate(1, 172_800_000_000_000)),
    ],
)
def test_a_rate_is_read(text: str, burst: int | None, rate: Rate) -> None:
    assert parse_rate(text, burst) == rate


@pytest.mark.parametrize(
    "text", ["", "100", "0/s", "-1/s", "1/0s", "1/fortnight", "1.5/s", "a/s", "1/s/s", "\u0661/s"]
)
def test_a_text_that_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="Rate must be like '100/hour', '5/min'"):
        RateLimit(text)


UNITS = {
    "s sec secs second seconds": 1,
    "m min mins minute minutes": 60,
    "h hour hours": 3600,
    "d day days": 86400,
}


def test_a_unit_is_one_that_is_named_or_its_plural() -> None:
    accepted = {unit: seconds for units, seconds in UNITS.items() for unit in units.split()}
    letters = "".join(sorted(set("".join(accepted))))
    short = map("".join, chain.from_iterable(product(letters, repeat=n) for n in range(1, 4)))
    near = {text for unit in accepted for text in (f"{unit}s", f"s{unit}", unit[:-1], unit[1:])}

    read: dict[str, int] = {}
    for unit in {*accepted, *short, *near}:
        with contextlib.suppress(ValueError):
            read[unit] = parse_rate(f"1/{unit}", None).interval // 1_000_000_000

    assert read == accepted


def test_the_message_of_an_unknown_unit_names_the_value_and_the_units() -> None:
    with pytest.raises(ValueError, match="got '1/ms'; units are s, sec, second, m, min, minute, h"):
        RateLimit("1/ms")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"burst": 0}, "burst must be at least 1, got 0"),
        ({"name": "a b"}, "name must be letters and digits, got 'a b'"),
        ({"name": '"'}, "name must be letters and digits"),
        ({"max_keys": 0}, "max_keys must be at least 1, got 0"),
        ({"without_redis": "open"}, "must be 'pass' or 'refuse', got 'open'"),
    ],
)
def test_an_option_that_cannot_be_is_refused(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RateLimit("1/s", **options)


def test_s99_a_client_is_told_what_is_left_and_when_to_come_back(
    project: Project, ask: Ask
) -> None:
    app = application(project)
    answers = [ask(app, "GET", "/v1/login") for _ in range(4)]

    assert [answer.status for answer in answers] == [200, 200, 200, 429]
    assert [answer.fields("ratelimit") for answer in answers] == [
        ['"default";r=2;t=1200'],
        ['"default";r=1;t=2400'],
        ['"default";r=0;t=3600'],
        ['"default";r=0;t=3600'],
    ]
    assert answers[3].fields("ratelimit-policy") == ['"default";q=3;w=3600']
    assert answers[3].fields("retry-after") == ["1200"]
    assert answers[3].json()["detail"] == "Too many requests; try again in 1200 s"


@pytest.mark.parametrize(
    ("outer", "inner", "names"),
    [
        ("RateLimit('9/min')", "RateLimit('3/hour')", ["default", "default-2"]),
        ("RateLimit('9/min', name='a')", "RateLimit('3/hour', name='a')", ["a", "a-2"]),
        ("RateLimit('9/min', name='all')", "RateLimit('3/hour')", ["all", "default"]),
        ("under('/docs', RateLimit('9/min'))", "RateLimit('3/hour')", ["default"]),
    ],
)
def test_limits_of_one_name_on_one_route_are_numbered(
    project: Project, ask: Ask, outer: str, inner: str, names: list[str]
) -> None:
    limited = f"from treefold_http.middleware import RateLimit\nmiddlewares = [{inner}]\n{OK}"
    code = f"from treefold_http.middleware import *\nmiddlewares = [{outer}]\n"
    app = project({"Api/v1/Limited/Get.py": limited, "Middleware/__init__.py": code})

    answer = ask(app, "GET", "/v1/limited")
    fields = [answer.fields("ratelimit-policy"), answer.fields("ratelimit")]

    assert [[field.split('"')[1] for field in found] for found in fields] == [names, names]


def test_s99_who_waits_as_long_as_told_is_let_in(project: Project, ask: Ask) -> None:
    app = application(project, "RateLimit('1/s')")

    assert ask(app, "GET", "/v1/login").status == 200
    refused = ask(app, "GET", "/v1/login")
    assert refused.fields("retry-after") == ["1"]
    time.sleep(1)
    assert ask(app, "GET", "/v1/login").status == 200


@pytest.mark.parametrize("hours", [-1, 1])
def test_s99_the_clock_of_the_day_changes_nothing(
    project: Project, ask: Ask, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    app = application(project)
    for _ in range(3):
        ask(app, "GET", "/v1/login")
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + hours * 3600)

    assert ask(app, "GET", "/v1/login").status == 429


def test_s97_spellings_methods_and_refusals_are_one_bucket(project: Project, ask: Ask) -> None:
    app = application(project, "RateLimit('6/hour')", default_version="latest")
    spellings = [
        ("GET", "/v1/login"),
        ("POST", "//v1/login"),
        ("GET", "/v1/%6Cogin"),
        ("HEAD", "/v1/login/"),
        ("DELETE", "/v1/login"),
        ("POST", "/login"),
        ("HEAD", "/login"),
        ("GET", "/v1/login?x"),
    ]
    found = [ask(app, method, target).status for method, target in spellings]

    assert found == [200, 200, 200, 405, 405, 200, 429, 429]


@pytest.mark.parametrize(
    ("method", "targets", "status", "body"),
    [
        ("GET", ["/v1/refuse"], 401, b""),
        ("POST", ["/v1/body"], 413, b"long"),
        ("GET", ["/v1/none", "/v1/other", "/nowhere"], 404, b""),
        ("GET", ["/v1/user/1", "/v1/user/2", "/v1/user/3"], 200, b""),
        ("GET", ["/v1/%ff", "/v1/%fe"], 400, b""),
    ],
)
def test_s97_every_answer_counts_at_its_template(
    project: Project, ask: Ask, method: str, targets: list[str], status: int, body: bytes
) -> None:
    app = application(project)
    chunks = [body] if body else []
    found = [ask(app, method, targets[n % len(targets)], chunks=chunks).status for n in range(4)]

    assert found == [status, status, status, 429]
    assert ask(app, "GET", "/v1/login").status == 200


def test_one_limit_for_all_that_an_entry_covers(project: Project, ask: Ask) -> None:
    app = application(project, "RateLimit('2/hour', per_route=False)")

    targets = ["/v1/login", "/v1/user/1", "/v1/none"]
    assert [ask(app, "GET", target).status for target in targets] == [200, 200, 429]


def test_s97_a_subtree_counts_methods_that_its_paths_do_not_have(
    project: Project, ask: Ask
) -> None:
    app = application(project, "under('/v1/login', RateLimit('2/hour'))")

    found = [ask(app, method, "/v1/login").status for method in ("GET", "DELETE", "PUT")]
    assert found == [200, 405, 429]
    assert ask(app, "GET", "/v1/user/1").fields("ratelimit") == []


def test_s93_a_forwarded_address_is_no_other_client(project: Project, ask: Ask) -> None:
    app = application(project)
    found = [
        ask(app, "GET", "/v1/login", headers=[("x-forwarded-for", f"1.2.3.{n}")]).status
        for n in range(10)
    ]

    assert found == [200] * 3 + [429] * 7


def test_s93_behind_a_trusted_proxy_the_nearest_address_counts(project: Project, ask: Ask) -> None:
    app = application(project, "ProxyHeaders(['127.0.0.1']), RateLimit('1/hour')")

    def send(chain: str) -> int:
        return ask(app, "GET", "/v1/login", headers=[("x-forwarded-for", chain)]).status

    assert [send("6.6.6.6, 192.0.2.1"), send("7.7.7.7, 192.0.2.1")] == [200, 429]
    assert send("192.0.2.1, 192.0.2.2") == 200


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", 429),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", 200),
        ("::ffff:192.0.2.1", "192.0.2.1", 429),
        ("192.0.2.1", "192.0.2.2", 200),
        (None, None, 429),
    ],
)
def test_s94_who_shares_a_bucket(
    project: Project, ask: Ask, first: str | None, second: str | None, status: int
) -> None:
    app = application(project, "RateLimit('1/hour')")

    assert ask(app, "GET", "/v1/login", more=peer(first)).status == 200
    assert ask(app, "GET", "/v1/login", more=peer(second)).status == status


def test_a_key_of_the_project_counts_and_none_counts_the_address(
    project: Project, ask: Ask
) -> None:
    app = application(project, "RateLimit('1/hour', key=lambda r: r.headers.get('x-api-key'))")

    def send(*headers: tuple[str, str]) -> int:
        return ask(app, "GET", "/v1/login", headers=headers).status

    assert [send(("x-api-key", "a")), send(("x-api-key", "b"))] == [200, 200]
    assert [send(("x-api-key", "a")), send(("x-api-key", "a" * 5000))] == [429, 200]
    assert [send(), send()] == [200, 429]
    assert send(("x-api-key", "127.0.0.1")) == 200


def test_a_key_that_is_checked_is_not_switched_off_by_inventing_keys(
    project: Project, ask: Ask
) -> None:
    app = application(
        project, "RateLimit('2/hour', key=lambda r: {'real': 1}.get(r.headers.get('x-api-key')))"
    )

    def send(key: str) -> int:
        return ask(app, "GET", "/v1/login", headers=[("x-api-key", key)]).status

    assert [send(f"invented {n}") for n in range(4)] == [200, 200, 429, 429]
    assert [send("real") for _ in range(3)] == [200, 200, 429]


def test_an_async_key_is_refused() -> None:
    async def find(request: object) -> str:
        return "client"

    key: Any = find
    with pytest.raises(TypeError, match="RateLimit key must be a plain function, got an async one"):
        RateLimit("1/hour", key=key)


def test_s71_handshakes_count_with_requests(project: Project, ask: Ask, talk: Talk) -> None:
    app = application(project, "RateLimit('5/min')")
    kinds = [talk(app, "/v1/login").kinds[0] for _ in range(4)]

    assert kinds == ["accept"] * 4
    assert ask(app, "GET", "/v1/login").status == 200
    refused = talk(app, "/v1/login").refusal
    assert (refused.status, refused.fields("retry-after")) == (429, ["12"])
    assert refused.fields("ratelimit") == ['"default";r=0;t=60']


def test_s96_of_many_at_once_exactly_the_burst_passes(
    project: Project, exchange: type[Exchange]
) -> None:
    app = application(project, "RateLimit('100/hour', burst=100)")

    async def main() -> list[int]:
        made = [exchange("GET", "/v1/login") for _ in range(500)]
        return [answer.status for answer in await asyncio.gather(*(m.run(app) for m in made))]

    statuses = asyncio.run(main())
    assert (statuses.count(200), statuses.count(429)) == (100, 400)


def test_s95_any_number_of_keys_is_bounded_and_a_blocked_one_stays_blocked() -> None:
    table = MemoryTable(parse_rate("5/hour", None), 100_000)
    for _ in range(5):
        assert table.count_request_and_compute_wait("blocked")[0] == 0
    before = _resident()
    for number in range(500_000):
        table.count_request_and_compute_wait(f"10.{number} /v1/login")

    assert _resident() - before < 32 * 1024 * 1024
    assert len(table) == 100_000
    assert table.count_request_and_compute_wait("blocked")[0] > 0


def test_d17_an_entry_keeps_100_000_keys_unless_it_says_otherwise() -> None:
    assert inspect.signature(RateLimit).parameters["max_keys"].default == 100_000


def test_s95_a_key_whose_use_is_over_makes_room_first() -> None:
    table = MemoryTable(Rate(1, 1), 2)
    for key in "abc":
        assert table.count_request_and_compute_wait(key)[0] == 0
    assert (len(table), table.count_request_and_compute_wait("a" * 100)[0]) == (2, 0)


def test_s95_a_table_of_blocked_keys_takes_another() -> None:
    table = MemoryTable(parse_rate("2/hour", None), 20)
    for number in range(20):
        assert [table.count_request_and_compute_wait(str(number))[0] for _ in range(2)] == [0, 0]

    assert [table.count_request_and_compute_wait("new")[0] for _ in range(2)] == [0, 0]
    assert (len(table), table.count_request_and_compute_wait("new")[0] > 0) == (20, True)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_applications_of_one_folder_count_for_themselves(project: Project, ask: Ask) -> None:
    """Tests begin with a fresh count where each makes an application of the same project."""
    first = application(project, "RateLimit('1/hour')")
    statuses = [ask(first, "GET", "/v1/login").status for _ in range(2)]
    second = Application(first.root)
    second.boot()
    first.overrides[print] = print  # plans all routes again
    statuses += [ask(app, "GET", "/v1/login").status for app in (first, second, second)]
    assert statuses == [200, 429, 429, 200, 429]
