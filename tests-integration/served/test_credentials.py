"""API keys, bearer tokens and JSON Web Tokens on the wire: requests and handshakes, either parser.

A credential that is wrong in any way is 401 with the challenge of its scheme, never an error.
"""

from __future__ import annotations

import base64
import hmac
import json
import re
import time
from collections.abc import Mapping
from typing import Any

import jwt
import pytest
from http_messages import Answer
from serving import Process
from socket_client import knock
from wire import ServeOnSocket

KEY = "0123456789abcdef0123456789abcdef"
SHOP_KEY = "shop-key-0123456789"
HANDLERS = {
    f"Api/v1/{name}/{method}.py": f"""
        from Services.credentials import {check}
        from treefold import Depends

        async def handler({connection}found=Depends({check})):
            {body}
        """
    for name, check in [("Key", "by_key"), ("Token", "by_token"), ("Claims", "claims")]
    for method, connection, body in [
        ("Get", "", 'return {"found": found}'),
        ("Ws", "websocket, ", "await websocket.accept()"),
    ]
}
TREE = {
    **HANDLERS,
    "Services/credentials.py": f"""
        from treefold.auth import api_key, bearer, jwt

        async def find(token: str) -> str | None:
            return "ann" if token == "a-good-token" else None

        by_key = api_key({{"shop": {SHOP_KEY!r}, "till": "till-key-0123456789"}})
        by_token = bearer(find)
        claims = jwt({KEY!r}, algorithm="HS256", audience="shop", issuer="https://id.example")
        """,
}


@pytest.fixture(scope="module")
def server(serve_on_socket: ServeOnSocket) -> Process:
    return serve_on_socket(TREE)


def knocked(server: Process, target: str, *fields: tuple[str, str]) -> Answer:
    """The answer to a handshake with fields."""
    raw = "".join(f"{name}: {value}\r\n" for name, value in fields).encode("latin-1")
    return knock(server, target, raw)


def challenge(answer: Answer) -> tuple[int, list[str]]:
    return answer.status, answer.values("www-authenticate")


@pytest.mark.parametrize(
    "fields",
    [
        [],
        [""],
        ["shop"],
        [SHOP_KEY[:-1]],
        [f"{SHOP_KEY}x"],
        [SHOP_KEY.upper()],
        [f"{SHOP_KEY},{SHOP_KEY}"],
        [SHOP_KEY, SHOP_KEY],
        [SHOP_KEY, "wrong"],
        ["wrong", SHOP_KEY],
        [f'"{SHOP_KEY}"'],
        [f"{SHOP_KEY[:-1]}\xb9"],
    ],
)
def test_a_wrong_api_key_is_401(server: Process, fields: list[str]) -> None:
    sent = [("X-Api-Key", value) for value in fields]
    answer = server.get("/v1/key", *sent)
    assert challenge(answer) == (401, ["ApiKey"])
    assert challenge(knocked(server, "/v1/key", *sent)) == (401, ["ApiKey"])


def test_a_good_api_key_is_its_client(server: Process) -> None:
    for name in ("X-Api-Key", "x-api-key", "X-API-KEY"):
        assert server.get("/v1/key", (name, SHOP_KEY)).json() == {"found": "shop"}
    assert server.get("/v1/key", ("X-Api-Key", f" {SHOP_KEY}\t ")).status == 200
    assert server.get(f"/v1/key?x-api-key={SHOP_KEY}").status == 401
    assert knocked(server, "/v1/key", ("X-Api-Key", SHOP_KEY)).status == 101


@pytest.mark.parametrize(
    "field", ["Bearer a-good-token", "bearer a-good-token", "BEARER  a-good-token"]
)
def test_a_good_bearer_token_is_its_user(server: Process, field: str) -> None:
    assert server.get("/v1/token", ("Authorization", field)).json() == {"found": "ann"}
    assert knocked(server, "/v1/token", ("Authorization", field)).status == 101


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ([], "Bearer"),
        ([""], "Bearer"),
        (["Bearer"], "Bearer"),
        (["Bearer "], "Bearer"),
        (["a-good-token"], "Bearer"),
        (["Basic a-good-token"], "Bearer"),
        (["Bearer\ta-good-token"], "Bearer"),
        (["Bearer a-good-token x"], "Bearer"),
        (["Bearer a-good-tokem"], 'Bearer error="invalid_token"'),
        (["Bearer a-good-token,"], 'Bearer error="invalid_token"'),
        (["Bearer a-good-toke\xee"], 'Bearer error="invalid_token"'),
    ],
)
def test_a_wrong_bearer_token_is_401(server: Process, fields: list[str], expected: str) -> None:
    sent = [("Authorization", value) for value in fields]
    assert challenge(server.get("/v1/token", *sent)) == (401, [expected])
    assert challenge(knocked(server, "/v1/token", *sent)) == (401, [expected])


@pytest.mark.parametrize(
    ("target", "name", "start"),
    [("/v1/key", "X-Api-Key", ""), ("/v1/token", "Authorization", "Bearer ")],
)
def test_a_credential_above_8_kb_is_refused_unread(
    server: Process, target: str, name: str, start: str
) -> None:
    for size in (8193, 20_000):
        field = (name, start + "k" * size)
        assert server.get(target, field).status == 401
        assert knocked(server, target, field).status == 400  # a line of a handshake has 8 KB


def token(
    claims: Mapping[str, Any] = {}, key: str = KEY, algorithm: str = "HS256", **head: Any
) -> str:
    full = {"exp": time.time() + 600, "aud": "shop", "iss": "https://id.example", "sub": "ann"}
    kept = {name: value for name, value in {**full, **claims}.items() if value is not None}
    return jwt.encode(kept, key, algorithm, head)


def part(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def signed(claims: bytes, head: bytes = b'{"alg": "HS256"}') -> str:
    """A token whose signature is good, whatever it says."""
    text = f"{part(head)}.{part(claims)}"
    return f"{text}.{part(hmac.digest(KEY.encode(), text.encode(), 'sha256'))}"


def forged() -> Mapping[str, str]:
    """Tokens that must not pass, by what is wrong with them."""
    head, claims, signature = token().split(".")
    none = part(b'{"alg": "none", "typ": "JWT"}')
    eve = part(json.dumps({"exp": time.time() + 600, "aud": "shop", "sub": "eve"}).encode())
    deep = b"[" * 2000 + b"]" * 2000
    return {
        "another key": token(key="x" * 32),
        "another algorithm": token(key=KEY * 2, algorithm="HS512"),
        "no algorithm": f"{none}.{claims}.",
        "no algorithm, signed": f"{none}.{claims}.{signature}",
        "no algorithm, good signature": signed(part(b"{}").encode(), b'{"alg": "none"}'),
        "no signature": f"{head}.{claims}.",
        "no dots": head,
        "four parts": f"{head}.{claims}.{signature}.{signature}",
        "changed claims": f"{head}.{eve}.{signature}",
        "deep claims": signed(b'{"exp": 9999999999, "sub": ' + deep + b"}"),
        "claims that are a list": signed(b"[]"),
        "claims that are no JSON": signed(b"{"),
        "claims that are no text": signed(b"\xff\xfe"),
        "a head that is a list": signed(b"{}", b"[]"),
        "no base64": "?.?.?",
        "expired": token({"exp": time.time() - 1}),
        "without exp": token({"exp": None}),
        "exp as text": token({"exp": "tomorrow"}),
        "exp without end": token({"exp": float("inf")}),
        "not yet": token({"nbf": time.time() + 600}),
        "another audience": token({"aud": "till"}),
        "without audience": token({"aud": None}),
        "audience of numbers": token({"aud": [1]}),
        "another issuer": token({"iss": "https://id.example.evil"}),
        "without issuer": token({"iss": None}),
        "critical header": token(crit=["exp"]),
    }


@pytest.mark.parametrize("wrong", list(forged()))
def test_a_forged_web_token_is_401(server: Process, wrong: str) -> None:
    field = f"Bearer {forged()[wrong]}"
    expected = (401, ['Bearer error="invalid_token"'])
    answer = server.get("/v1/claims", ("Authorization", field))
    assert challenge(answer) == expected
    assert answer.json()["detail"] == "This token is not valid"
    assert challenge(knocked(server, "/v1/claims", ("Authorization", field))) == expected


def test_a_good_web_token_gives_its_claims(server: Process) -> None:
    field = f"Bearer {token({'aud': ['till', 'shop']})}"
    assert server.get("/v1/claims", ("Authorization", field)).json()["found"]["sub"] == "ann"
    assert knocked(server, "/v1/claims", ("Authorization", field)).status == 101
    signature = field.rpartition(".")[2]
    for position in range(0, len(signature), 7):
        other = "A" if signature[position] != "A" else "B"
        changed = (
            field[: -len(signature)] + signature[:position] + other + signature[position + 1 :]
        )
        assert server.get("/v1/claims", ("Authorization", changed)).status == 401


def test_no_credential_is_in_the_log(server: Process) -> None:
    sent = f"Bearer {token()}"
    for target, name, value in (
        ("/v1/key", "X-Api-Key", SHOP_KEY),
        ("/v1/token", "Authorization", "Bearer a-good-token"),
        ("/v1/claims", "Authorization", sent),
        (f"/v1/claims?access_token={sent[7:]}", "Accept", "*/*"),
    ):
        server.line(server.get(target, (name, value)))
    written = "\n".join(server.wait_for(lambda lines: lines))
    for secret in (SHOP_KEY, "a-good-token", sent[7:], sent.rpartition(".")[2]):
        assert secret not in written
    assert not re.search(r"\[ERROR\]|Traceback", written)
