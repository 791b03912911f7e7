"""An arrangement as the files of a project, as its author would write them.

`write_files` is the table of contents; the sources of callers, guards and handlers are in
`callers_source`, `guards_source` and `handlers_source`.
"""

from __future__ import annotations

from collections.abc import Mapping

from arrangements.arrangement import (
    TIGHT_BURST,
    Arrangement,
    CacheKey,
    CacheSite,
    Cover,
    Credential,
    Entry,
    Limit,
    Reading,
)
from arrangements.callers_source import write_people
from arrangements.clients import NETWORK, SECRET
from arrangements.guards_source import guard_expression, write_guards
from arrangements.handlers_source import write_bodies, write_handlers
from arrangements.targets import MOUNTS, Target

_FIELD_OF = {
    Credential.BEARER: "Authorization",
    Credential.JWT: "Authorization",
    Credential.BASIC: "Authorization",
    Credential.HEADER_KEY: "X-Api-Key",
    Credential.LANGUAGE: "Accept-Language",
    Credential.TENANT: "X-Tenant",
}

_ACCOUNTS = '''
"""An application of another framework, which takes many spellings of a path for one."""
import itertools
import json
import posixpath

runs = itertools.count(1)


async def accounts(scope, receive, send):
    assert scope["type"] == "http"
    who = dict(scope["headers"]).get(b"x-account")
    path = posixpath.normpath("/" + scope["path"].lstrip("/")).lower()
    status = 404
    if path.endswith("/area/account"):
        status = 401 if who is None else 200
    body = {"target": "account", "who": who and who.decode(), "made": f"account-{next(runs)}"}
    await send({
        "type": "http.response.start",
        "status": status,
        "headers": [(b"content-type", b"application/json")],
    })
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})
'''

_STAMPS = '''
"""A field of the client that goes back to it."""


async def stamp(request, call_next):
    response = await call_next(request)
    if (tag := request.headers.get("x-tag")) is not None:
        response.headers["X-Stamp"] = tag
    return response


class Stamp:
    def after(self, request, response):
        if (tag := request.headers.get("x-tag")) is not None:
            response.headers["X-Stamp"] = tag
'''


_PROVIDERS = """
from Services.people import find_caller

providers = {"known_caller": find_caller}
"""


def write_files(arrangement: Arrangement, redis: str) -> Mapping[str, str]:
    """Return the files of the project by name.

    Args:
        redis: the address of a server.
    """
    files = {
        "treefold.toml": _write_settings(arrangement, redis),
        "revoked.txt": "",
        "Services/people.py": write_people(
            arrangement.credential, arrangement.reading, arrangement.access
        ),
        "Services/bodies.py": write_bodies(arrangement),
        "Services/guards.py": write_guards(arrangement),
        "Services/stamps.py": _STAMPS,
        "providers.py": _PROVIDERS,
        "Middleware/__init__.py": _write_middleware(arrangement),
        **write_handlers(arrangement, cache_arguments(arrangement)),
    }
    if MOUNTS & set(arrangement.targets):
        files |= _write_mounts(arrangement, redis)
    return files


def cache_arguments(arrangement: Arrangement) -> str:
    """Return the arguments of `cached` in an arrangement."""
    if arrangement.cache_key is CacheKey.KEY:
        return "60, key=name_key"
    if arrangement.cache_key is CacheKey.VARY:
        return f"60, vary=[{_FIELD_OF[arrangement.credential]!r}]"
    return "60"


def _write_settings(arrangement: Arrangement, redis: str) -> str:
    lines = [
        f'secret_key = "{SECRET}"',
        f'redis_url = "{redis}"',
        "health = true",
        "docs = true",
        "auto_head = true",
        "installed_extensions = false",
    ]
    if Target.DEFAULT in arrangement.targets:
        lines.append('default_version = "latest"')
    if arrangement.cache_redis:
        lines += ["[caches]", f'default = "{redis}"']
    return "\n".join(lines) + "\n"


def _write_middleware(arrangement: Arrangement) -> str:
    entries = ",\n    ".join(_write_entry(arrangement, entry) for entry in arrangement.entries)
    return f"""
from Services.guards import *
from Services.people import name_key, note_caller, NoteCaller
from Services.stamps import Stamp, stamp
from treefold.cache import cached
from treefold.middleware import (
    CSRF, GZip, IPAllowlist, Metrics, RateLimit, SecurityHeaders, Sessions, TrustedHosts,
    requests_only, under,
)

middlewares = [
    {entries}
]
"""


def _write_entry(arrangement: Arrangement, entry: Entry) -> str:
    is_odd = arrangement.seed % 2 == 1
    match entry:
        case Entry.SESSIONS:
            return f"Sessions(store={arrangement.session.value!r})"
        case Entry.CACHE_LIST:
            return f"cached({cache_arguments(arrangement)})"
        case Entry.CACHE_UNDER:
            prefix = "/" + "/".join(arrangement.cached_prefix)
            return f"under({prefix!r}, cached({cache_arguments(arrangement)}))"
        case Entry.LIMIT:
            return _write_limit(arrangement)
        case Entry.GUARD:
            return _write_guard(arrangement)
        case Entry.IDENTITY:
            return "NoteCaller()" if is_odd else _keep_off_sockets(arrangement, "note_caller")
        case Entry.STAMP:
            return "Stamp()" if is_odd else _keep_off_sockets(arrangement, "stamp")
        case Entry.METRICS:
            return f"Metrics(allowed=[{NETWORK!r}])"
        case Entry.GZIP:
            return "GZip(minimum=10)"
        case Entry.SECURITY_HEADERS:
            return "SecurityHeaders()"


def _keep_off_sockets(arrangement: Arrangement, function: str) -> str:
    """Return a function that guards nothing as its author lists it where there are sockets."""
    return f"requests_only({function})" if Target.SOCKET in arrangement.targets else function


def _write_limit(arrangement: Arrangement) -> str:
    redis = ", redis=True" if arrangement.limit_redis else ""
    if arrangement.limit is Limit.WIDE:
        return f'RateLimit("1000/min", per_route=False{redis})'
    return f'RateLimit("1/hour", burst={TIGHT_BURST}, per_route=False{redis})'


def _write_guard(arrangement: Arrangement) -> str:
    written = guard_expression(arrangement)
    if arrangement.cover is not Cover.UNDER:
        return written
    prefix = "/" + "/".join(arrangement.prefix)
    return f"under({prefix + 'x' if arrangement.is_mistyped else prefix!r}, {written})"


def _write_mounts(arrangement: Arrangement, redis: str) -> Mapping[str, str]:
    targets = arrangement.targets
    mounts = {
        Target.STATIC: 'app.mount("/files", StaticFiles("web"))',
        Target.MOUNT: 'app.mount("/legacy", accounts)',
        Target.INNER: 'app.mount("/inner", Application(ROOT / "inner"))',
    }
    lines = "\n    ".join(mounts[target] for target in targets if target in mounts)
    files = {
        "hooks.py": f"""
from pathlib import Path

from accounts import accounts
from treefold import Application
from treefold import StaticFiles

ROOT = Path(__file__).parent


async def mount_all(app):
    {lines}


on_startup = [mount_all]
on_shutdown = []
""",
        "accounts.py": _ACCOUNTS,
        "web/area/page.txt": "a page of the folder\n",
    }
    if Target.INNER in targets:
        files |= {f"inner/{name}": text for name, text in _write_inner(arrangement, redis).items()}
    return files


def _write_inner(arrangement: Arrangement, redis: str) -> Mapping[str, str]:
    """Return a project whose handler asks who calls by itself, without any middleware."""
    credential = arrangement.credential
    if credential is Credential.SESSION:
        credential = Credential.TENANT
    is_cached = CacheSite.DECORATOR in arrangement.caches
    keyed = arrangement.cache_key is CacheKey.KEY
    arguments = "60, key=name_key" if keyed else "60"
    decorator = f"@cached({arguments})" if is_cached else ""
    settings = f'[caches]\ndefault = "{redis}"\n' if arrangement.cache_redis else ""
    return {
        "treefold.toml": f'secret_key = "{SECRET}"\ninstalled_extensions = false\n{settings}',
        "revoked.txt": "",
        "Services/people.py": write_people(credential, Reading.REQUEST),
        "Api/v1/Private/Area/Thing/Get.py": f"""
import itertools

from Services.people import identify, name_key, require
from treefold.cache import cached

runs = itertools.count(1)


{decorator}
async def handler(request):
    who = require(identify(request))
    return {{"target": "inner", "who": who, "made": f"inner-{{next(runs)}}"}}
""",
    }
