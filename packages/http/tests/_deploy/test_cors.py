"""Findings about CORS: what browsers do not honour, and who may read too much."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from treefold_http import Application
from treefold_http.deploy import check_deployment

Told = tuple[str, str, str]
Ask = Callable[..., list[Told]]

APP = "https://app.example.com"
CREDENTIALS = f"CORS([{APP!r}], allow_credentials=True)"
HOSTS = "TrustedHosts(['api.example.com'])"
PLACES = ("Book/Post", "Book/Get", "Book/[isbn]/Get", "User/Get", "A/Get", "B/Get")
HANDLER = "async def handler(request):\n    return {}\n"


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """What is found about CORS behind a list of middleware: id, text, line to write."""
    monkeypatch.setenv("TREEFOLD_SECRET_KEY", "8dMZ4PcRkY1vUq6hXn3wTz9sJb5gLf2e")
    number = iter(range(100))

    def ask(entries: str, **files: str) -> list[Told]:
        root = tmp_path / str(next(number))
        code = f"from treefold_http.middleware import *\nmiddlewares = [{entries}]\n"
        routes = dict.fromkeys([f"Api/v1/{place}.py" for place in PLACES], HANDLER)
        for name, text in {**routes, "Middleware/__init__.py": code, **files}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        app = Application(root)
        app.boot()
        assert not app.report.broken
        found = check_deployment(app)
        return [(f.kind.id, f.text, f.write) for f in found if f.kind.id.startswith("cors-")]

    return ask


@pytest.mark.parametrize(
    "entries",
    [
        "",
        "CORS(['*'])",
        f"CORS([{APP!r}]), RateLimit('5/s')",
        f"CORS([{APP!r}]), Sessions(), {HOSTS}",
        f"{HOSTS}, {CREDENTIALS}, Sessions(trusted_origins=[{APP!r}])",
        f"{HOSTS}, {CREDENTIALS}, Sessions(), CSRF(trusted_origins=[{APP!r}])",
        f"{CREDENTIALS}, Sessions(csrf=False)",
        "CORS(['http://localhost:5173'], allow_credentials=True), Sessions()",
        "TrustedHosts(['api.example.org']), CORS(['https://app.example.com'],"
        " allow_credentials=True), Sessions(samesite='none', csrf=False)",
        "TrustedHosts(['api.shop.co.uk']), CORS(['https://app.shop.co.uk'],"
        " allow_credentials=True), Sessions(csrf=False)",
        f"under('/v1/book', {CREDENTIALS}), under('/v1/user', Sessions())",
        f"under('/v1/a', CORS([{APP!r}])), under('/v1/b', CORS(['*']))",
        f"CORS([{APP!r}]), under('/v1/b', CORS(['https://other.example.com']))",
        "CORS(['*'], allow_headers=['*'])",
    ],
)
def test_cors_that_works_is_no_finding(told: Ask, entries: str):
    assert told(entries) == []


def test_pages_of_another_site_have_no_session(told: Ask):
    for origin, samesite in (("https://app.example.org", "lax"), ("https://203.0.113.7", "strict")):
        cors = f"CORS([{origin!r}], allow_credentials=True)"
        sessions = f"Sessions(csrf=False, samesite={samesite!r})"
        assert told(f"{HOSTS}, {cors}, {sessions}") == [
            (
                "cors-site",
                f"CORS allows credentials for {origin!r}, which is another site than"
                " 'api.example.com': its pages have no session, whose cookie is"
                f" SameSite={samesite.capitalize()}",
                "Sessions(samesite='none')  # or serve both below one domain",
            )
        ]


def test_the_domain_of_the_cookie_is_a_site_too(told: Ask):
    cors = "CORS(['https://*.example.org'], allow_credentials=True)"
    ((_, text, _),) = told(f"{cors}, Sessions(csrf=False, domain='example.com')")
    assert "'https://*.example.org', which is another site than 'example.com'" in text


def test_pages_without_tls_are_no_place_for_credentials(told: Ask):
    cors = "CORS(['http://app.example.com:8080'], allow_credentials=True)"
    assert told(f"{cors}, Sessions(csrf=False)") == [
        (
            "cors-plain",
            "CORS allows credentials for 'http://app.example.com:8080', whose pages are sent"
            " without TLS",
            "CORS(['https://app.example.com:8080'], ...)",
        )
    ]


@pytest.mark.parametrize("guard", ["", ", CSRF()"])
def test_pages_that_csrf_does_not_trust_cannot_change_anything(told: Ask, guard: str):
    assert told(f"{HOSTS}, {CREDENTIALS}, Sessions(){guard}") == [
        (
            "cors-csrf",
            f"CORS allows credentials for {APP!r}, which CSRF does not trust:"
            " DELETE, PATCH, POST, PUT with a session are 403",
            f"Sessions(trusted_origins=[{APP!r}])",
        )
    ]
    below = "CORS(['https://*.example.com'], allow_credentials=True)"
    ((_, _, line),) = told(f"{below}, Sessions(){guard}")
    assert line == "Sessions(trusted_origins=[...])"


def test_two_entries_for_one_origin_fail(told: Ask):
    cases = {
        f"CORS([{APP!r}]), CORS(['*'])": (repr(APP), "for every route"),
        f"CORS([{APP!r}]), under('/v1/Book/[isbn]', CORS(['https://*.example.com']))": (
            repr(APP),
            "below /v1/book/{isbn}",
        ),
        "CORS(['*']), under('/v1', CORS(['*']))": ("every origin", "below /v1"),
    }
    for entries, (origin, where) in cases.items():
        text = f"two CORS entries allow {origin} {where}: browsers refuse such answers"
        assert told(entries) == [("cors-twice", text, "CORS(...)  # one of them for each route")]


def test_methods_and_fields_that_no_preflight_grants(told: Ask):
    assert told("CORS(['*'], allow_methods=['post'])") == [
        (
            "cors-method",
            "CORS(allow_methods=['post']) allows nothing: methods are in capitals",
            "CORS(allow_methods=['POST'], ...)",
        )
    ]
    assert told("CORS(['*'], allow_headers=['Authorization'])") == [
        (
            "cors-header",
            "CORS(allow_headers=['Authorization']) leaves Content-Type out: pages cannot send JSON",
            "CORS(allow_headers=['Authorization', 'Content-Type'], ...)",
        )
    ]


def test_tokens_that_pages_cannot_send(told: Ask):
    service = {
        "Api/v1/Who/Get.py": "from treefold_http import Depends, auth\n\n"
        "signed_in = auth.bearer(lambda token: None)\n\n\n"
        "async def handler(user: str = Depends(signed_in)) -> str:\n    return user\n"
    }
    assert told("CORS(['*'])", **service) == [
        (
            "cors-header",
            "CORS(allow_headers=['Content-Type']) leaves Authorization out:"
            " pages cannot send a token",
            "CORS(allow_headers=['Content-Type', 'Authorization'], ...)",
        )
    ]
    assert told("CORS(['*'], allow_headers=['Content-Type', 'authorization'])", **service) == []


def test_a_limit_outside_of_cors_is_told(told: Ask):
    text = "RateLimit comes before CORS: pages cannot read its 429"
    for entries in ("RateLimit('5/s'), CORS(['*'])", "RateLimit('5/s'), under('/v1', CORS(['*']))"):
        write = "middlewares = [CORS(...), RateLimit(...)]"
        assert told(entries) == [("cors-after-limit", text, write)]
    assert told("under('/v1/a', RateLimit('5/s')), under('/v1/b', CORS(['*']))") == []


@pytest.mark.parametrize(
    ("pattern", "foreign"),
    [
        (r"https://.*example\.com", "https://evilexample.com"),
        (r"https://[a-z]+example\.com", "https://evilexample.com"),
        (r"https://app.example.com", "https://appxexamplexcom"),
        (r"https?://api\.example\.com.*", "https://api.example.com.attacker.example"),
        (r"https://([a-z]+\.)?example\.com", None),
        (r"https://[a-z0-9-]+\.example\.com", None),
        (r"https://(app|shop)\.example\.com(:[0-9]+)?", None),
    ],
)
def test_patterns_of_origins_are_tried_with_names_of_others(
    told: Ask, pattern: str, foreign: str | None
):
    cors = f"CORS(allow_origin_pattern=r'{pattern}', allow_credentials=True)"
    found = [text for name, text, _ in told(f"{HOSTS}, {cors}") if name == "cors-pattern"]
    assert found == (
        [] if foreign is None else [f"allow_origin_pattern={pattern!r} matches {foreign!r}"]
    )


def test_an_internal_service_is_not_for_pages_of_every_site(told: Ask):
    network = "IPAllowlist(['10.0.0.0/8'])"
    assert [name for name, *_ in told(f"CORS(['*']), {network}")] == ["cors-internal"]
    assert told(f"CORS([{APP!r}]), {network}") == []
    assert told(f"under('/v1/book', CORS(['*'])), under('/v1/user', {network})") == []
