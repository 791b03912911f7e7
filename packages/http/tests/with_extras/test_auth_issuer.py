"""`jwt_issuer` against a real server that is honest, away, slow or hostile."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, cast

import jwt as library
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt import algorithms

from treefold_http import Application
from treefold_http.auth import _issuer, jwt_issuer

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer, Exchange

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]
Reply = tuple[int, Mapping[str, str], bytes]

RSA, OTHER = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
WEAK = rsa.generate_private_key(public_exponent=65537, key_size=1024)
EC, EC384 = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP384R1())
ED = ed25519.Ed25519PrivateKey.generate()
WELL_KNOWN = "/.well-known/openid-configuration"


def to_jwk(key: Any, kid: str | None = "a", **more: Any) -> dict[str, Any]:
    kinds: dict[type, Any] = {
        rsa.RSAPrivateKey: algorithms.RSAAlgorithm,
        ec.EllipticCurvePrivateKey: algorithms.ECAlgorithm,
        ed25519.Ed25519PrivateKey: algorithms.OKPAlgorithm,
    }
    algorithm = next(made for kind, made in kinds.items() if isinstance(key, kind))
    made = json.loads(algorithm.to_jwk(key.public_key()))
    made |= {"kid": kid, **more}
    return {name: value for name, value in made.items() if value is not None}


def text(value: Any) -> bytes:
    return json.dumps(value).encode()


class Issuers(ThreadingHTTPServer):
    """A server with an issuer below each name; `replies` by path, computed at each request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replies: dict[str, Callable[[_Handler], Reply | None]] = {}
        self.asked: Counter[str] = Counter()
        self.release = threading.Event()

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def add(self, name: str, keys: Any, **discovery: Any) -> str:
        """Add an issuer with these keys, and change members of its discovery document."""
        issuer = f"{self.base}/{name}"
        document = {"issuer": issuer, "jwks_uri": f"{issuer}/keys", **discovery}
        self.answer(f"/{name}{WELL_KNOWN}", text(document))
        self.answer(f"/{name}/keys", text({"keys": keys}))
        return issuer

    def answer(
        self, path: str, body: bytes, status: int = 200, fields: Mapping[str, str] = {}
    ) -> None:
        self.replies[path] = lambda _: (status, fields, body)


class _Handler(BaseHTTPRequestHandler):
    @property
    def issuers(self) -> Issuers:
        return cast("Issuers", self.server)

    def do_GET(self) -> None:
        self.issuers.asked[self.path] += 1
        reply = self.issuers.replies[self.path](self)
        if reply is None:
            return
        status, fields, body = reply
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **fields}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def issuers() -> Iterator[Issuers]:
    with Issuers() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.release.set()
        server.shutdown()
        thread.join()


def make_app(project: Project, issuers: Mapping[str, str]) -> Application:
    head = "from treefold_http import *\nfrom treefold_http.auth import *\n"
    files = {
        f"Api/v1/{name}/Get.py": f"{head}claims_of = jwt_issuer({issuer!r}, audience='api')\n"
        "async def handler(request, claims=Depends(claims_of)):\n"
        "    p = request.principal\n"
        "    return [claims['sub'], p.source, sorted(p.scopes), sorted(p.roles)]\n"
        for name, issuer in issuers.items()
    }
    return project(files)


def sign(
    issuer: str, key: Any = RSA, algorithm: str = "RS256", kid: str | None = "a", **claims: Any
) -> str:
    now = time.time()
    full = {"iss": issuer, "aud": "api", "sub": "ann", "exp": now + 60, **claims}
    head = claims.pop("head", {})
    full = {name: value for name, value in full.items() if value is not None and name != "head"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a weak key, which is to be refused
        return library.encode(full, key, algorithm, {**({"kid": kid} if kid else {}), **head})


def part(value: Any) -> str:
    return base64.urlsafe_b64encode(text(value)).rstrip(b"=").decode()


def bearer(token: str) -> list[tuple[str, str]]:
    return [("authorization", f"Bearer {token}")]


def public_pem(key: Any) -> bytes:
    from cryptography.hazmat.primitives import serialization as form

    return key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)


def hostile_tokens(issuers: Issuers, issuer: str) -> dict[str, str]:
    now = time.time()
    claims = {"iss": issuer, "aud": "api", "sub": "ann", "exp": now + 60}
    head, body, signature = sign(issuer).split(".")

    def forge(secret: bytes, algorithm: str = "HS256", **more: Any) -> str:
        signed = f"{part({'alg': algorithm, 'kid': 'a', 'typ': 'JWT', **more})}.{part(claims)}"
        digest = hmac.digest(secret, signed.encode(), "sha256")
        return f"{signed}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"

    evil = f"{issuers.base}/evil/keys"
    return {
        "nothing in it": "..",
        "one part": "abc",
        "unsigned": f"{part({'alg': 'none', 'kid': 'a'})}.{part(claims)}.",
        "unsigned, in capitals": f"{part({'alg': 'NONE', 'kid': 'a'})}.{part(claims)}.",
        "no signature": f"{head}.{body}.",
        "other claims": f"{head}.{part({**claims, 'sub': 'eve'})}.{signature}",
        "signature of another": f"{head}.{body}.{sign(issuer, OTHER).split('.')[2]}",
        "the public key as a secret": forge(public_pem(RSA)),
        "the modulus as a secret": forge(to_jwk(RSA)["n"].encode()),
        "an empty secret": forge(b""),
        "HS256 said to be RS256": forge(public_pem(RSA), "RS256"),
        "an algorithm that is not allowed": sign(issuer, RSA, "RS512"),
        "PS256": sign(issuer, RSA, "PS256"),
        "a list as the algorithm": f"{part({'alg': ['RS256'], 'kid': 'a'})}.{body}.{signature}",
        "no algorithm": f"{part({'kid': 'a'})}.{body}.{signature}",
        "the algorithm of another key": sign(issuer, EC, "ES256", kid="a"),
        "its own key": sign(issuer, OTHER, head={"jwk": to_jwk(OTHER)}),
        "jku": sign(issuer, OTHER, kid="evil", head={"jku": evil}),
        "x5u": sign(issuer, OTHER, kid="evil", head={"x5u": evil}),
        "a URL as the kid": sign(issuer, OTHER, kid=evil),
        "a path as the kid": sign(issuer, OTHER, kid="../../evil/keys"),
        "a file as the kid": sign(issuer, OTHER, kid="/dev/null"),
        "a number as the kid": f"{part({'alg': 'RS256', 'kid': 7})}.{body}.{signature}",
        "a list as the kid": f"{part({'alg': 'RS256', 'kid': ['a']})}.{body}.{signature}",
        "an unknown kid": sign(issuer, RSA, kid="b"),
        "no kid, and two keys": sign(issuer, RSA, kid=None),
        "an unknown crit": sign(issuer, head={"crit": ["x"], "x": 1}),
        "no aud": sign(issuer, aud=None),
        "another aud": sign(issuer, aud="other"),
        "a list of other aud": sign(issuer, aud=["other", "api2"]),
        "no iss": sign(issuer, iss=None),
        "another iss": sign(issuer, iss=f"{issuers.base}/evil"),
        "iss with a slash": sign(issuer, iss=f"{issuer}/"),
        "no exp": sign(issuer, exp=None),
        "expired": sign(issuer, exp=now - 120),
        "not yet valid": sign(issuer, nbf=now + 120),
        "issued in the future": sign(issuer, iat=now + 3600),
        "text as exp": f"{head}.{part({**claims, 'exp': 'never'})}.{signature}",
        "a list": f"{head}.{part([])}.{signature}",
        "not JSON": f"{head}.{base64.urlsafe_b64encode(b'{').decode()}.{signature}",
        "deeply nested": f"{base64.urlsafe_b64encode(b'[' * 5000).decode()}.{body}.{signature}",
        "too long": sign(issuer, sub="x" * 9000),
    }


def test_hostile_tokens_are_401_and_lead_nowhere(
    project: Project, ask: Ask, issuers: Issuers
) -> None:
    issuer = issuers.add("good", [to_jwk(RSA), to_jwk(EC, "e"), to_jwk(ED, "d")])
    issuers.add("evil", [to_jwk(OTHER, "evil"), to_jwk(OTHER, "a")])
    app = make_app(project, {"Good": issuer})
    tokens = hostile_tokens(issuers, issuer)
    assert len(tokens) >= 40
    good = {
        "RS256": sign(issuer, scope="book:read book:write", roles=["editor", 7]),
        "ES256": sign(issuer, EC, "ES256", "e", scp=["book:read"]),
        "EdDSA": sign(issuer, ED, "EdDSA", "d"),
        "a list of aud": sign(issuer, aud=["other", "api"]),
        "expired within the leeway": sign(issuer, exp=time.time() - 5),
    }
    found = {n: ask(app, "GET", "/v1/good", headers=bearer(t)) for n, t in good.items()}
    assert {name: answer.status for name, answer in found.items()} == dict.fromkeys(good, 200)
    scopes = ["book:read", "book:write"]
    assert found["RS256"].json() == ["ann", issuer, scopes, ["editor"]]
    assert found["ES256"].json() == ["ann", issuer, ["book:read"], []]
    answers = {n: ask(app, "GET", "/v1/good", headers=bearer(t)) for n, t in tokens.items()}
    assert {name: a.status for name, a in answers.items()} == dict.fromkeys(tokens, 401)
    said = {answer.json()["detail"] for answer in answers.values()}
    assert said == {"This token is not valid", "Send Authorization: Bearer TOKEN"}
    # one fetch for all of them, and none of what a token names
    assert issuers.asked == {f"/good{WELL_KNOWN}": 1, "/good/keys": 1}


def drip(handler: _Handler) -> None:
    """Send a byte at a time, each within the timeout of a read."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
    for _ in range(200):
        if handler.issuers.release.wait(0.05):
            return
        try:
            handler.wfile.write(b" ")
        except OSError:
            return


def hang(handler: _Handler) -> None:
    handler.issuers.release.wait(20)


def hostile_sets(issuers: Issuers) -> dict[str, str]:
    """Issuers by name, none of which has keys that count."""
    key = to_jwk(RSA)
    add, made = issuers.add, dict[str, str]()
    made["Symmetric"] = add("symmetric", [{"kty": "oct", "k": "AAAA", "kid": "a", "alg": "RS256"}])
    made["Weak"] = add("weak", [to_jwk(WEAK)])
    made["Encryption"] = add("encryption", [to_jwk(RSA, use="enc")])
    made["Signing"] = add("signing", [to_jwk(RSA, key_ops=["sign"])])
    made["Operations"] = add("operations", [to_jwk(RSA, key_ops=7)])
    made["Private"] = add("private", [{**key, "d": "AQAB"}])
    made["Forbidden"] = add("forbidden", [to_jwk(RSA, alg="RS512")])
    made["Curve"] = add("curve", [to_jwk(EC384)])
    made["Broken"] = add("broken", [{**key, "n": "!"}, {**key, "e": 3}, {"kty": ["RSA"]}, 7, None])
    made["Empty"] = add("empty", [])
    made["Object"] = add("object", {"a": key})
    made["Many"] = add("many", [key] * 101)
    made["Mismatch"] = add("mismatch", [key], issuer=f"{issuers.base}/good")
    made["Slash"] = add("slash", [key], issuer=f"{issuers.base}/slash/")
    made["Nobody"] = add("nobody", [key], issuer=None)
    made["Elsewhere"] = add("elsewhere", [key], jwks_uri="http://example.com/keys")
    made["File"] = add("file", [key], jwks_uri="file:///etc/passwd")
    made["Relative"] = add("relative", [key], jwks_uri="/good/keys")
    made["Number"] = add("number", [key], jwks_uri=7)
    made["Lines"] = add("lines", [key], jwks_uri=f"{issuers.base}/good/keys HTTP/1.1\r\nX: y")
    for name in ("Redirect", "Moved", "Html", "Status", "Huge", "Drip", "Hang", "Cut", "List"):
        made[name] = add(name.lower(), [key])
    issuers.answer("/redirect/keys", b"", 302, {"Location": f"{issuers.base}/good/keys"})
    moved = {"Location": f"{issuers.base}/good{WELL_KNOWN}"}
    issuers.answer(f"/moved{WELL_KNOWN}", b"", 301, moved)
    issuers.answer("/html/keys", b"<html></html>")
    issuers.answer("/status/keys", text({"keys": [key]}), 404)
    issuers.answer("/huge/keys", text({"keys": [key], "x": "x" * _issuer.MAX_DOCUMENT}))
    issuers.answer("/list/keys", text([key]))
    issuers.answer("/cut/keys", text({"keys": [key]})[:-3], fields={"Content-Length": "99999"})
    issuers.replies["/drip/keys"] = drip
    issuers.replies["/hang/keys"] = hang
    return made


def test_hostile_key_sets_are_no_keys(
    project: Project, ask: Ask, issuers: Issuers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_issuer, "TIMEOUT", 0.3)
    issuers.add("good", [to_jwk(RSA)])
    sets = hostile_sets(issuers)
    app = make_app(project, sets)
    wrong: list[Any] = []
    for name, issuer in sets.items():
        start = time.monotonic()
        token = sign(issuer, WEAK if name == "Weak" else RSA)
        answer = ask(app, "GET", f"/v1/{name.lower()}", headers=bearer(token))
        if answer.status != 503 or time.monotonic() - start > 8:
            wrong.append((name, answer.status, time.monotonic() - start))
        assert answer.fields("retry-after") == ["5"], name
    assert wrong == []
    # a redirect is not followed, and a second request waits for `RETRY`
    assert "/good/keys" not in issuers.asked
    assert ask(app, "GET", "/v1/empty", headers=bearer(sign(sets["Empty"]))).status == 503
    assert issuers.asked["/empty/keys"] == 1


def test_some_keys_of_a_set_count(project: Project, ask: Ask, issuers: Issuers) -> None:
    sets = {
        "Mixed": issuers.add(
            "mixed", [7, {"kty": "oct", "k": "AAAA", "kid": "a"}, to_jwk(WEAK), to_jwk(RSA)]
        ),
        "Twice": issuers.add("twice", [to_jwk(OTHER), to_jwk(RSA), to_jwk(EC)]),
        "Single": issuers.add("single", [to_jwk(RSA)]),
        "Unnamed": issuers.add("unnamed", [to_jwk(RSA, None)]),
        "Query": issuers.add("query", [], jwks_uri=f"{issuers.base}/query/keys?p=1"),
    }
    issuers.answer("/query/keys?p=1", text({"keys": [to_jwk(RSA)]}))
    app = make_app(project, sets)
    for name, issuer in sets.items():
        kid = None if name in ("Single", "Unnamed") else "a"
        answer = ask(app, "GET", f"/v1/{name.lower()}", headers=bearer(sign(issuer, kid=kid)))
        assert (name, answer.status) == (name, 200)


def test_keys_rotate_and_stay_while_the_issuer_is_away(
    project: Project, ask: Ask, issuers: Issuers, monkeypatch: pytest.MonkeyPatch, lines: Any
) -> None:
    issuer = issuers.add("good", [to_jwk(RSA, "old")])
    app = make_app(project, {"Good": issuer})

    def status(kid: str, key: Any = RSA) -> int:
        return ask(app, "GET", "/v1/good", headers=bearer(sign(issuer, key, kid=kid))).status

    assert (status("old"), status("new", OTHER)) == (200, 401)
    issuers.add("good", [to_jwk(OTHER, "new")])
    # the first unknown one of a minute was asked for; the next fetch needs another minute
    assert [status("new", OTHER) for _ in range(3)] == [401] * 3
    assert issuers.asked["/good/keys"] == 1
    monkeypatch.setattr(_issuer, "INTERVAL", 0.0)
    assert status("new", OTHER) == 200
    assert status("old") == 401  # a key that the issuer has taken back
    issuers.answer(f"/good{WELL_KNOWN}", b"", 503)
    assert (status("new", OTHER), status("x", OTHER)) == (200, 401)
    assert "keys of %s cannot be fetched" in str([record.msg for record in lines.records])
    monkeypatch.setattr(_issuer, "OLDEST", 0.0)
    assert status("new", OTHER) == 503


def test_old_keys_serve_while_new_ones_are_fetched(
    project: Project, exchange: type[Exchange], issuers: Issuers, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer = issuers.add("good", [to_jwk(RSA)])
    app = make_app(project, {"Good": issuer})
    arrived = threading.Event()

    def arrive_and_hang(handler: _Handler) -> None:
        arrived.set()
        hang(handler)

    async def status() -> int:
        headers = bearer(sign(issuer))
        return (await exchange("GET", "/v1/good", headers=headers).run(app)).status

    async def main() -> None:
        assert await status() == 200
        monkeypatch.setattr(_issuer, "REFRESH", 0.0)
        monkeypatch.setattr(_issuer, "INTERVAL", 0.0)
        issuers.replies["/good/keys"] = arrive_and_hang
        # the server hangs, and no request waits for it
        assert await status() == 200
        assert await asyncio.to_thread(arrived.wait, 10)
        assert [await status() for _ in range(5)] == [200] * 5
        issuers.release.set()

    asyncio.run(main())
    assert issuers.asked["/good/keys"] == 2


def test_one_fetch_serves_all_and_outlives_the_first_that_asked(
    project: Project, exchange: type[Exchange], issuers: Issuers
) -> None:
    issuer = issuers.add("good", [])
    arrived, go = threading.Event(), threading.Event()

    def wait_for_go(handler: _Handler) -> Reply:
        arrived.set()
        go.wait(10)
        return 200, {}, text({"keys": [to_jwk(RSA)]})

    issuers.replies["/good/keys"] = wait_for_go
    app = make_app(project, {"Good": issuer})

    async def main() -> list[int]:
        headers = bearer(sign(issuer))
        first = asyncio.create_task(exchange("GET", "/v1/good", headers=headers).run(app))
        await asyncio.to_thread(arrived.wait, 10)
        others = [exchange("GET", "/v1/good", headers=headers).run(app) for _ in range(20)]
        waiting = [asyncio.create_task(other) for other in others]
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        go.set()
        return [answer.status for answer in await asyncio.gather(*waiting)]

    assert asyncio.run(main()) == [200] * 20
    assert issuers.asked["/good/keys"] == 1


@pytest.mark.parametrize(
    ("issuer", "options", "message"),
    [
        ("http://id.example.com", {}, "must be https URLs, got 'http://id.example.com'; http is"),
        ("https://", {}, "must be https URLs, got 'https://'"),
        ("https://a@id.example.com", {}, "must be https URLs"),
        ("id.example.com", {}, "must be https URLs"),
        ("http://localhost.example.com", {}, "must be https URLs"),
        ("https://id.example.com/?a=1", {}, "must be a URL without a query"),
        ("https://id.example.com", {"audience": ""}, "audience must be a text, got an empty one"),
        ("https://id.example.com", {"algorithms": ["HS256"]}, "must be public ones, got 'HS256'"),
        ("https://id.example.com", {"algorithms": ["none"]}, "must be public ones, got 'none'"),
        ("https://id.example.com", {"algorithms": []}, "must name one or more"),
    ],
)
def test_what_is_no_issuer_is_refused(issuer: str, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        jwt_issuer(issuer, **cast("Any", {"audience": "api", **options}))
