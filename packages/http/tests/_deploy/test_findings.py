"""What is no mistake: findings that a careful project must not get."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from treefold_http import Application
from treefold_http.deploy import check_deployment

Ask = Callable[..., list[str]]

SOUND = """
from treefold_http.middleware import *

middlewares = [
    ProxyHeaders(["127.0.0.1"]), TrustedHosts(["api.example.com"]), SecurityHeaders(), {entries}
]
"""
WHO = """
from treefold_http import Forbidden, HTTPError, auth


def find(key: str) -> str | None:
    return key or None


def refuse() -> None:
    raise Forbidden("not you")


class Rights:
    def require(self, right: str) -> None:
        if right != "read":
            refuse()


class Either:
    def __call__(self, request) -> str:
        raise HTTPError(403, "not you")


with_key = auth.api_key(find)
rights = Rights()
"""
OPEN = "async def handler():\n    return {}\n"
KEY = "from Services.who import with_key\nfrom treefold_http import Depends\n\n\n"
WITH_KEY = f"{KEY}async def handler(who: str = Depends(with_key)):\n    return {{}}\n"


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """The ids of findings in a sound project with files and entries of middleware besides."""
    monkeypatch.setenv("TREEFOLD_SECRET_KEY", "8dMZ4PcRkY1vUq6hXn3wTz9sJb5gLf2e")
    number = iter(range(100))
    kept: dict[str, str] = {}  # by later calls, each of which has a root of its own

    def ask(files: dict[str, str], entries: str = "", settings: str = "") -> list[str]:
        root = tmp_path / str(next(number))
        kept.update({(f"Api/{n}" if n.startswith("v") else n): text for n, text in files.items()})
        written = {
            "Middleware/__init__.py": SOUND.format(entries=entries),
            "Services/who.py": WHO,
            "treefold.toml": settings,
            **kept,
        }
        for name, text in written.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        app = Application(root)
        app.boot()
        assert not app.report.broken, app.report.broken[0].traceback
        return sorted({finding.kind.id for finding in check_deployment(app)})

    return ask


@pytest.mark.parametrize(
    "guard",
    [
        "from Services.who import refuse\n\n\nasync def handler():\n    refuse()\n",
        "import Services.who\n\n\nasync def handler():\n    Services.who.refuse()\n",
        "from Services.who import rights\n\n\nasync def handler():\n    rights.require('write')\n",
        "from Services.who import Either\nfrom treefold_http import Depends\n\n\n"
        "async def handler(who: str = Depends(Either())):\n    return {}\n",
        "from treefold_http import Forbidden as No\n\n\nasync def handler():\n    raise No('')\n",
        "import treefold_http as t\n\n\nasync def handler():\n    raise t.HTTPError(401, 'no')\n",
        "from treefold_http.middleware import IPAllowlist\n\n"
        f"middlewares = [IPAllowlist(['10.0.0.0/8'])]\n\n\n{OPEN}",
        "from Services.who import refuse\n\n\nasync def check(request, call_next):\n    refuse()\n"
        f"    return await call_next(request)\n\n\nmiddlewares = [check]\n\n\n{OPEN}",
    ],
)
def test_a_guard_is_known_in_whatever_form(found: Ask, guard: str):
    assert found({"v1/Order/Get.py": WITH_KEY, "v1/Order/Delete.py": guard}) == []
    assert found({"v1/Order/Delete.py": OPEN}) == ["guard-sibling"]


def test_reading_may_be_open_where_writing_is_guarded(found: Ask):
    assert found({"v1/Book/Get.py": OPEN, "v1/Book/Post.py": WITH_KEY}) == []


LOGIN = """
from dataclasses import dataclass

from treefold_http import Forbidden, Request
from treefold_http.auth import {name}
{more}


@dataclass
class Sent:
    name: str
    password: str


async def handler(request: Request, sent: Sent) -> None:
    {call}
"""


def test_a_registration_needs_no_limit_and_a_login_does(found: Ask):
    new = LOGIN.format(name="hash_password", more="", call="hash_password(sent.password)")
    assert found({"v1/User/Post.py": new}) == []
    old = LOGIN.format(name="verify_password as right", more="", call="right(sent.password, None)")
    assert found({"v1/User/Post.py": old}) == ["login-unlimited"]
    limit = "from treefold_http.middleware import RateLimit\n\nmiddlewares = [RateLimit('9/min')]\n"
    assert found({"v1/User/Post.py": old.replace("\n\n\n@", f"\n{limit}\n\n@", 1)}) == []
    own = old.replace("    right(", "    raise HTTPError(429, 'later')\n    right(")
    own = own.replace("import Forbidden", "import Forbidden, HTTPError")
    assert found({"v1/User/Post.py": own}) == []


def test_imports_inside_of_a_function_are_followed(found: Ask):
    code = LOGIN.format(name="login as _", more="", call="{call}")
    for name, expected in (("hash_password", []), ("verify_password", ["login-unlimited"])):
        call = f"from treefold_http.auth import {name} as it\n    it(sent.password)"
        assert found({"v1/User/Post.py": code.replace("{call}", call)}) == expected


ACCOUNTS = """
from treefold_http.auth import hash_password, verify_password


class Accounts:
    def __init__(self) -> None:
        self.hashes = {}

    def register(self, password: str) -> str:
        return self._hash(password)

    def _hash(self, password: str) -> str:
        return hash_password(password)

    def is_right(self, password: str) -> bool:
        return self._check(password)

    def _check(self, password: str) -> bool:
        return bool(verify_password(password, None))
"""


@pytest.mark.parametrize("scope", ["app", "request"])
@pytest.mark.parametrize(
    ("call", "expected"), [("register", []), ("is_right", ["login-unlimited"])]
)
def test_of_a_service_the_methods_that_are_called_count(
    found: Ask, scope: str, call: str, expected: list[str]
):
    code = LOGIN.format(
        name="login as _",
        more="from Services.accounts import Accounts",
        call=f"accounts.{call}('')",
    ).replace("sent: Sent)", "sent: Sent, accounts: Accounts)")
    provided = "from Services.accounts import Accounts\nfrom treefold_http import Provider\n\n"
    provided += f"providers = {{Accounts: Provider(Accounts, scope='{scope}')}}\n"
    files = {"Services/accounts.py": ACCOUNTS, "providers.py": provided, "v1/User/Post.py": code}
    assert found(files) == expected


def test_a_logged_in_user_confirms_a_password_without_a_limit(found: Ask):
    sure = LOGIN.format(
        name="verify_password",
        more="from Services.who import with_key\nfrom treefold_http import Depends",
        call="verify_password(sent.password, None)",
    ).replace("sent: Sent)", "sent: Sent, who: str = Depends(with_key))")
    assert found({"v1/Email/Put.py": sure}) == []


@pytest.mark.parametrize(
    ("method", "member", "secret"),
    [
        ("Get", "password_hash: str", True),
        ("Post", "password_hash: str | None", True),
        ("Get", "has_password: bool", False),
        ("Get", "password_changed_at: datetime", False),
        ("Get", "token: str", False),
        ("Get", "pin: str", False),
        ("Post", "secret: str", False),
        ("Get", "secret: str", True),
    ],
)
def test_members_that_no_client_should_get(found: Ask, method: str, member: str, secret: bool):
    code = "from dataclasses import dataclass\nfrom datetime import datetime\n\n\n@dataclass\n"
    code += f"class Shape:\n    {member}\n\n\nasync def handler() -> list[Shape]:\n    return []\n"
    assert found({f"v1/Shape/{method}.py": code}) == (["response-secret"] if secret else [])


CACHED = """
from Services.who import refuse
from treefold_http.cache import cached
from treefold_http.middleware import *


async def check(request, call_next):
    if request.headers.get("x-key") != "one":
        refuse()
    return await call_next(request)


middlewares = [
    ProxyHeaders(["127.0.0.1"]), TrustedHosts(["api.example.com"]), SecurityHeaders(), {entries}
]
"""


def test_a_guard_of_the_project_comes_before_a_cache(found: Ask):
    for entries, expected in (
        ("cached(60), check", ["cache-before-guard"]),
        ("check, cached(60)", []),
    ):
        middleware = CACHED.format(entries=entries)
        assert found({"v1/Book/Get.py": OPEN, "Middleware/__init__.py": middleware}) == expected


def test_sessions_that_samesite_protects_are_a_mere_warning(found: Ask):
    files = {"v1/Book/Post.py": OPEN}
    assert found(files, "Sessions(csrf=False)") == ["csrf-same-site"]
    assert found(files, "Sessions(csrf=False, samesite='none')") == ["csrf-off"]
    assert found(files, "Sessions(csrf=False), CSRF()") == []
    assert found({"v1/Book/Post.py": OPEN}, "Sessions()") == []


def test_documents_behind_a_guard_are_not_public(found: Ask):
    files = {"v1/Book/Get.py": OPEN}
    assert found(files, settings="docs = true\n") == ["docs-public"]
    assert found(files, "IPAllowlist(['10.0.0.0/8'])", "docs = true\n") == []


OWN = """
from dataclasses import dataclass


@dataclass
class Own:
    cookie_name: str = ""
    token_url: str = ""
    smtp_password: str = ""
    hook_secret: str = ""


app_settings = Own
"""


def test_settings_that_are_no_secrets_or_those_of_others(found: Ask):
    app = "[app]\ncookie_name = 'shop'\ntoken_url = 'https://id.example.com/token'\n"
    files = {"v1/Book/Get.py": OPEN, "settings.py": OWN}
    assert found(files, settings=f"{app}smtp_password = 'of another'\n") == []
    assert found(files, settings=f"{app}hook_secret = 'short'\n") == ["secret-short"]


def test_a_folder_of_public_files_may_hold_what_pages_need(found: Ask):
    mount = "from treefold_http import StaticFiles\n\n\nclass Web:\n    def setup(self, app):\n"
    mount += "        app.mount('/web', StaticFiles('Public'))\n\n\nextensions = [Web()]\n"
    public = ("index.html", "app.js", "schema.sql", "example.py", "ca.pem", ".env", "data.toml")
    files = {"v1/Book/Get.py": OPEN, "extensions.py": mount}
    files |= {f"Public/{name}": "public\n" for name in public}
    assert found(files) == []
    assert found({"Public/old/key.pem": "-----BEGIN PRIVATE KEY-----\n"}) == ["static-private"]
