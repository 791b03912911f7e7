"""The sources of the handlers, and of `Services/bodies.py`, from which they get what they return.

Each body names the target, the caller it was made for, all that decided it, and the run of the
handler that made it: `made` is the same in two responses only if the second one was kept.
"""

from __future__ import annotations

from collections.abc import Mapping

from arrangements.arrangement import (
    Answer,
    Arrangement,
    CacheSite,
    Cover,
    Credential,
    Echo,
    Guard,
    Reading,
    Session,
)
from arrangements.callers_source import is_shipped
from arrangements.guards_source import guard_expression
from arrangements.targets import Target

_IMPORTS = """
import itertools
from typing import Annotated

from Services.bodies import describe, respond
from Services.guards import *
from Services.people import *
from treefold import Cookie, Depends, Header, Query, StreamingResponse
from treefold.cache import cached
from treefold.middleware import IPAllowlist

runs = itertools.count(1)
"""

_ECHOES = {
    Echo.PATH: 'body["path"] = request.raw_path.decode()',
    Echo.QUERY: 'body["query"] = [list(pair) for pair in request.query.multi_items()]',
    Echo.BODY: 'body["sent"] = (await request.body()).decode()',
    Echo.OWNER: 'body["owner"] = request.session.setdefault("owner", token_hex(8))',
    Echo.TAG: 'body["tag"] = request.headers.get("x-tag")',
    Echo.GREETING: 'body["greeting"] = await greet(who)',
}

_RETURNED = {
    Answer.TABLE: "body",
    Answer.RESPONSE: 'Response.json(body, headers={"X-Who": body["who"]})',
    Answer.SHARED: "OK",
}


def write_bodies(arrangement: Arrangement) -> str:
    """Return the module that makes the bodies."""
    define, rest = ("async def", "await asyncio.sleep(0)")
    if arrangement.is_plain:
        define, rest = "def", "pass"
    echoes = "\n    ".join(_ECHOES[echo] for echo in Echo if echo in arrangement.echoes)
    return f'''
"""The bodies of all handlers."""
import asyncio
from secrets import token_hex

from treefold import Response
from treefold.cache import cached

OK = Response.json({{"target": "any"}})


@cached(60)
async def greet(who):
    return f"hello {{who}}"


{define} describe(request, target, who, made):
    {rest}
    body = {{"target": target, "who": who, "made": f"{{target}}-{{made}}"}}
    {echoes}
    return body


def respond(body):
    return {_RETURNED[arrangement.answer]}
'''


def write_handlers(arrangement: Arrangement, cache_arguments: str) -> Mapping[str, str]:
    """Return the files below `Api/`; those of targets that are not asked for are left out."""
    targets = set(arrangement.targets)
    is_cached = CacheSite.DECORATOR in arrangement.caches
    decorator = f"@cached({cache_arguments})\n" if is_cached else ""
    own = ""
    if arrangement.cover is Cover.MODULE and arrangement.guard is not Guard.DEPENDENCY:
        own = f"middlewares = [{guard_expression(arrangement)}]\n"
    area = "Api/v1/Private/Area"
    files = {f"{area}/Thing/Get.py": _write_handler(arrangement, "thing", own + decorator)}
    if Target.OPEN in targets:
        files["Api/v1/Open/Thing/Get.py"] = _write_handler(arrangement, "open")
    if Target.POST in targets:
        files[f"{area}/Thing/Post.py"] = _write_handler(arrangement, "post")
    if Target.STREAM in targets:
        files[f"{area}/Stream/Get.py"] = _write_stream(arrangement)
    if Target.SOCKET in targets:
        files[f"{area}/Live/Socket.py"] = _write_socket(arrangement)
    if arrangement.session is not Session.NONE:
        files |= _LOGINS
    return files


_LOGINS = {
    "Api/v1/Login/Post.py": """
from treefold.auth import login


async def handler(request):
    login(request, request.headers["x-login"])
""",
    "Api/v1/Logout/Post.py": """
from treefold.auth import logout


async def handler(request):
    logout(request)
""",
}


def _write_handler(arrangement: Arrangement, target: str, head: str = "") -> str:
    parameters, who = _read_caller(arrangement)
    define, wait = ("def", "") if arrangement.is_plain else ("async def", "await ")
    return f"""{_IMPORTS}

{head}{define} handler(request{parameters}):
    who = {who}
    return respond({wait}describe(request, {target!r}, who, next(runs)))
"""


def _write_stream(arrangement: Arrangement) -> str:
    parameters, who = _read_caller(arrangement)
    return f"""{_IMPORTS}
import json


async def cut(body):
    text = json.dumps(body).encode()
    yield text[:5]
    yield text[5:]


async def handler(request{parameters}):
    who = {who}
    body = {"" if arrangement.is_plain else "await "}describe(request, "stream", who, next(runs))
    return StreamingResponse(cut(body), media_type="application/json")
"""


def _write_socket(arrangement: Arrangement) -> str:
    parameters, who = "", "require(identify(websocket))"
    if arrangement.reading is Reading.DECLARED and is_shipped(arrangement.credential):
        parameters, who = ", who: str = Depends(caller)", "who"
    if arrangement.guard is Guard.DEPENDENCY:
        parameters += ", passed: None = Depends(check_socket_gate)"
    return f"""{_IMPORTS}
from treefold import WebSocket


async def handler(websocket: WebSocket{parameters}):
    who = {who}
    await websocket.accept()
    await websocket.send_json({{"target": "live", "who": who, "made": f"live-{{next(runs)}}"}})
"""


_DECLARED = {
    Credential.NONE: ("", "require(identify(request))"),
    Credential.BASIC: ('sent: Annotated[str, Header("Authorization")] = ""', "find_basic(sent)"),
    Credential.QUERY_KEY: ('sent: Annotated[str, Query("api_key")] = ""', "find(sent)"),
    Credential.COOKIE_KEY: ('sent: Annotated[str, Cookie("api_key")] = ""', "find(sent)"),
    Credential.LANGUAGE: ('sent: Annotated[str, Header("Accept-Language")] = "-"', "sent"),
    Credential.TENANT: ('sent: Annotated[str, Header("X-Tenant")] = "-"', "sent"),
}


def _read_caller(arrangement: Arrangement) -> tuple[str, str]:
    """Return the parameters of a handler after the request, and the expression for its caller."""
    parameters: list[str] = []
    match arrangement.reading:
        case Reading.REQUEST:
            who = "require(identify(request))"
        case Reading.DEPENDENCY:
            parameters.append("who: str = Depends(who_calls)")
            who = "who"
        case Reading.DECLARED if is_shipped(arrangement.credential):
            parameters.append("who: str = Depends(caller)")
            who = "who"
        case Reading.DECLARED:
            declared, found = _DECLARED[arrangement.credential]
            parameters.append(declared)
            who = f"require({found})"
        case Reading.STATE:
            who = "require(request.state.caller.name)"
        case Reading.CONTEXT:
            who = "require(CALLER.get())"
        case Reading.PROVIDER:
            parameters.append("known_caller")
            who = "require(known_caller)"
    if arrangement.guard is Guard.DEPENDENCY:
        parameters.append("passed: None = Depends(check_gate)")
    return "".join(f", {each}" for each in parameters), who
