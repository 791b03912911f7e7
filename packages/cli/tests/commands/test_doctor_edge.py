"""`treefold doctor` on middleware: CORS that a browser will not follow, extras that are missing."""

import json
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

Project = Callable[..., Path]
Executable = Callable[..., "subprocess.CompletedProcess[str]"]
Told = tuple[str, str, str]

APP = "https://app.example.com"
CREDENTIALS = f"CORS([{APP!r}], allow_credentials=True)"
HOSTS = "TrustedHosts(['api.example.com'])"


@pytest.fixture
def told(project: Project, forked: Executable) -> Callable[..., list[Told]]:
    """What `doctor` finds in a project behind a list of middleware, about one topic."""

    def ask(entries: str, topic: str = "cors", **files: str) -> list[Told]:
        root = project("v1/Book/Get.py", "v1/Book/Post.py")
        (root / "treefold.toml").write_text('secret_key = "0123456789abcdef0123456789abcdef"\n')
        code = f"from treefold_http.middleware import *\nmiddlewares = [{entries}]\n"
        for name, text in {"Middleware/__init__.py": code, **files}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        done = forked("doctor", "--json", cwd=root)
        report = json.loads(done.stdout)
        found: list[dict[str, Any]] = report["findings"]
        failed = any(each["status"] == "fail" for each in found)
        assert (done.returncode, report["ok"], done.stderr) == (int(failed), not failed, "")
        return [(f["status"], f["text"], f["advice"]) for f in found if f["topic"] == topic]

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
def test_cors_that_works_is_no_finding(told: Callable[..., list[Told]], entries: str):
    assert told(entries) == []


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (f"CORS(['{APP}/'])", f"An origin must be scheme and host, such as '{APP}', got '{APP}/'"),
        (
            f"CORS(['{APP}/shop'])",
            f"An origin must be scheme and host, such as '{APP}', got '{APP}/shop'",
        ),
        (
            "CORS(['app.example.com'])",
            f"An origin must be scheme and host, such as '{APP}', got 'app.example.com'",
        ),
        (
            "CORS(['*'], allow_credentials=True)",
            "CORS(allow_origins=['*']) cannot be combined with allow_credentials=True",
        ),
        ("CORS()", "CORS() must allow an origin; pass allow_origins="),
        ("Sessions(store='redis')", "Sessions(store='redis') needs an address"),
    ],
)
def test_what_refuses_to_boot_fails_with_its_reason(
    told: Callable[..., list[Told]], entries: str, message: str
):
    ((status, text, _),) = told(entries, "boot")
    assert status == "fail"
    assert text.startswith("Middleware/__init__.py: ")
    assert message in text


def test_pages_of_another_site_have_no_session(told: Callable[..., list[Told]]):
    for origin, samesite in (("https://app.example.org", "lax"), ("https://203.0.113.7", "strict")):
        cors = f"CORS([{origin!r}], allow_credentials=True)"
        sessions = f"Sessions(csrf=False, samesite={samesite!r})"
        assert told(f"{HOSTS}, {cors}, {sessions}") == [
            (
                "warn",
                f"CORS allows credentials for {origin!r}, which is another site than"
                " 'api.example.com': its pages have no session, whose cookie is"
                f" SameSite={samesite.capitalize()}",
                "serve both below one domain, or set Sessions(samesite='none')",
            )
        ]


def test_the_domain_of_the_cookie_is_a_site_too(told: Callable[..., list[Told]]):
    cors = "CORS(['https://*.example.org'], allow_credentials=True)"
    ((_, text, _),) = told(f"{cors}, Sessions(csrf=False, domain='example.com')")
    assert "'https://*.example.org', which is another site than 'example.com'" in text


def test_pages_without_tls_have_no_session(told: Callable[..., list[Told]]):
    cors = "CORS(['http://app.example.com:8080'], allow_credentials=True)"
    assert told(f"{cors}, Sessions(csrf=False)") == [
        (
            "warn",
            "CORS allows credentials for 'http://app.example.com:8080', whose pages are sent"
            " without TLS: browsers send them no cookie that is Secure and SameSite=Lax",
            "serve them at 'https://app.example.com:8080'",
        )
    ]


@pytest.mark.parametrize("guard", ["", ", CSRF()"])
def test_pages_that_csrf_does_not_trust_cannot_change_anything(
    told: Callable[..., list[Told]], guard: str
):
    assert told(f"{HOSTS}, {CREDENTIALS}, Sessions(){guard}") == [
        (
            "warn",
            f"CORS allows credentials for {APP!r}, which CSRF does not trust:"
            " POST, PUT, PATCH and DELETE with a session are 403",
            f"add {APP!r} to trusted_origins of Sessions or CSRF",
        )
    ]
    below = "CORS(['https://*.example.com'], allow_credentials=True)"
    ((_, _, advice),) = told(f"{below}, Sessions(){guard}")
    assert advice == "add its origins by name to trusted_origins of Sessions or CSRF"


def test_two_entries_for_one_origin_fail(told: Callable[..., list[Told]]):
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
        assert told(entries) == [("fail", text, "leave one of them for each route")]


def test_methods_and_fields_that_no_preflight_grants(told: Callable[..., list[Told]]):
    assert told("CORS(['*'], allow_methods=['post'])") == [
        (
            "fail",
            "CORS(allow_methods=['post']) allows nothing: methods are in capitals",
            "write 'POST'",
        )
    ]
    assert told("CORS(['*'], allow_headers=['Authorization'])") == [
        (
            "warn",
            "CORS(allow_headers=['Authorization']) leaves Content-Type out: pages cannot send JSON",
            "add 'Content-Type'",
        )
    ]


def test_tokens_that_pages_cannot_send(told: Callable[..., list[Told]]):
    service = {
        "Services/who.py": "from treefold_http import auth\n"
        "signed_in = auth.bearer(lambda token: None)\n"
    }
    assert told("CORS(['*'])", **service) == [
        (
            "warn",
            "CORS(allow_headers=['Content-Type']) leaves Authorization out:"
            " pages cannot send a token",
            "add 'Authorization'",
        )
    ]
    assert told("CORS(['*'], allow_headers=['Content-Type', 'authorization'])", **service) == []


def test_a_limit_outside_of_cors_is_told(told: Callable[..., list[Told]]):
    text = "RateLimit comes before CORS: pages cannot read its 429"
    for entries in ("RateLimit('5/s'), CORS(['*'])", "RateLimit('5/s'), under('/v1', CORS(['*']))"):
        assert told(entries) == [("warn", text, "list CORS first")]
    assert told("under('/v1/a', RateLimit('5/s')), under('/v1/b', CORS(['*']))") == []


def test_boot_files_and_handlers_may_print_and_no_hook_runs(project: Project, forked: Executable):
    root = project()
    for name, text in {
        "Middleware/__init__.py": "middlewares = []\nprint('hello')\n",
        "hooks.py": "def start():\n    raise SystemExit(9)\n\n\non_startup = [start]\n",
        "Api/v1/Book/Get.py": "print('handler')\n\ndef handler(request):\n    return ''\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    done = forked("doctor", "--json", cwd=root)
    assert (done.returncode, done.stderr) == (0, "hello\nhandler\n")
    assert json.loads(done.stdout)["ok"]


@pytest.mark.parametrize(
    "use",
    [
        "from treefold_http.auth import jwt\n",
        "from treefold.auth import jwt as token\n",
        "from treefold import auth\nshow = auth.jwt\n",
        "import treefold.auth\nshow = treefold.auth.jwt\n",
        "import treefold_http.auth as who\n\n\ndef f():\n    return who.jwt('k')\n",
    ],
)
def test_a_missing_extra_that_is_used_fails(told: Callable[..., list[Told]], use: str):
    assert find_spec("jwt") is None, "this test needs an environment without the extra"
    found = told("", "extras", **{"Utils/tokens.py": use})
    line = use.count("\n", 0, use.rindex("jwt") if "def" not in use else use.index("who.jwt")) + 1
    assert (
        found.count(
            (
                "fail",
                f"jwt: not installed, and Utils/tokens.py:{line} uses jwt",
                "pip install 'treefold[jwt]'",
            )
        )
        == 1
    )


def test_passwords_without_argon2_are_told(told: Callable[..., list[Told]]):
    assert find_spec("argon2") is None, "this test needs an environment without the extra"
    use = "from treefold_http.auth import averify_password, login\n"
    found = told("", "extras", **{"Api/v1/Login/Services/check.py": use, "Services/no.py": "(\n"})
    assert (
        "warn",
        "argon2: not installed: averify_password of Api/v1/Login/Services/check.py:1 uses scrypt,"
        " and verifies no hash of argon2",
        "pip install 'treefold[argon2]'",
    ) in found


def test_extras_that_nothing_uses_are_no_fault(told: Callable[..., list[Told]]):
    use = "from treefold_http.auth import login\njwt = 'mentioned'\n"
    found = told("", "extras", **{"Services/x.py": use})
    assert {status for status, *_ in found} == {"ok"}
    assert ("ok", "jwt: not installed", "pip install 'treefold[jwt]'") in found
    assert not [text for _, text, _ in found if text.startswith("test: not installed")]
