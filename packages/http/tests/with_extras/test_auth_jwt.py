"""JSON Web Tokens: one algorithm, `exp` required, nothing but 401 for anything else."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import jwt as library
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from treefold_http import Application, Settings
from treefold_http.auth import jwt

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

KEY, FORMER = "k" * 32, "f" * 32
PRIVATE = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PRIVATE_PEM = PRIVATE.private_bytes(
    serialization.Encoding.PEM,
    serialization.PrivateFormat.PKCS8,
    serialization.NoEncryption(),
).decode()
PUBLIC_PEM = (
    PRIVATE.public_key()
    .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    .decode()
)


@pytest.fixture
def ask_with(project: Project, ask: Ask) -> Callable[..., Answer]:
    """Send one token to a handler behind `jwt(...)`."""
    apps: dict[str, Application] = {}

    def send(token: str, options: str = "algorithm='HS256'", key: str = repr(KEY)) -> Answer:
        name = f"{key}{options}"
        if name not in apps:
            text = (
                "from treefold_http import Depends\nfrom treefold_http.auth import jwt\n"
                f"claims_of = jwt({key}, {options})\n"
                "async def handler(claims=Depends(claims_of)): return {'claims': claims}"
            )
            apps[name] = project({"Api/v1/Get.py": text}, root=f"r{len(apps)}")
        headers = [("authorization", f"Bearer {token}")] if token else []
        return ask(apps[name], "GET", "/v1", headers=headers)

    return send


def token(
    claims: Mapping[str, Any] = {}, key: str = KEY, algorithm: str = "HS256", **head: Any
) -> str:
    full: dict[str, Any] = {"exp": time.time() + 60, "sub": "ann", **claims}
    return library.encode(
        {name: value for name, value in full.items() if value is not None}, key, algorithm, head
    )


def part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def test_a_good_token_gives_its_claims(ask_with: Callable[..., Answer]) -> None:
    assert ask_with(token()).json()["claims"]["sub"] == "ann"
    rotating = f"[{KEY!r}, {FORMER!r}]"
    assert ask_with(token(key=FORMER), key=rotating).status == 200
    assert ask_with(token(key=FORMER)).status == 401
    options = "algorithm='RS256'"
    signed = token(key=PRIVATE_PEM, algorithm="RS256")
    assert ask_with(signed, options, repr(PUBLIC_PEM)).status == 200


def test_every_other_token_is_401(ask_with: Callable[..., Answer]) -> None:
    head, body, signature = token().split(".")
    later = {"exp": time.time() + 60, "sub": "eve"}
    none = part({"alg": "none", "typ": "JWT"})
    wrong = {
        "empty": "x",
        "no dots": "abc",
        "unsigned": f"{none}.{part(later)}.",
        "unsigned, upper case": f"{part({'alg': 'NONE'})}.{part(later)}.",
        "no signature": f"{head}.{body}.",
        "other claims": f"{head}.{part(later)}.{signature}",
        "other key": token(key="o" * 32),
        "other algorithm": token(algorithm="HS512", key="k" * 64),
        "expired": token({"exp": time.time() - 1}),
        "no exp": token({"exp": None}),
        "exp is text": f"{head}.{part({'exp': 'x'})}.{signature}",
        "not yet": token({"nbf": time.time() + 60}),
        "another audience": token({"aud": "other"}),
        "unknown crit": token(crit=["x"], x=1),
        "not JSON": f"{head}.{base64.urlsafe_b64encode(b'{').decode()}.{signature}",
        "a list": f"{head}.{part([])}.{signature}",
        "huge": "a." * 4000,
        "too long": token({"sub": "x" * 9000}),
    }
    for name, sent in wrong.items():
        answer = ask_with(sent)
        assert answer.status == 401, name
        assert b"invalid" not in answer.body, name  # it does not say why
    assert ask_with("").fields("www-authenticate") == ["Bearer"]


def test_signed_claims_of_wrong_types_are_401(ask_with: Callable[..., Answer]) -> None:
    wrong: list[dict[str, Any]] = [
        {"exp": "tomorrow"},
        {"exp": 1e400},
        {"exp": -1},
        {"exp": []},
        {"exp": {}},
        {"exp": True},
        {"exp": None},
        {"exp": time.time() + 60, "nbf": "x"},
        {"exp": time.time() + 60, "iat": "x"},
    ]
    for claims in wrong:
        text = f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part(claims)}"
        digest = hmac.digest(KEY.encode(), text.encode(), "sha256")
        signature = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        assert ask_with(f"{text}.{signature}").status == 401, claims


def test_a_public_key_is_no_shared_secret(ask_with: Callable[..., Answer]) -> None:
    head, body = part({"alg": "HS256", "typ": "JWT"}), part({"exp": time.time() + 60})
    digest = hmac.digest(PUBLIC_PEM.encode(), f"{head}.{body}".encode(), "sha256")
    forged = f"{head}.{body}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"
    assert ask_with(forged, "algorithm='RS256'", repr(PUBLIC_PEM)).status == 401


def test_audience_and_issuer_are_required_where_they_are_given(
    ask_with: Callable[..., Answer],
) -> None:
    options = "algorithm='HS256', audience='shop', issuer='https://id.example'"
    good = {"aud": ["other", "shop"], "iss": "https://id.example"}
    assert ask_with(token(good), options).status == 200
    for wrong in ({"aud": "other"}, {"aud": None}, {"iss": "https://evil.example"}, {"iss": None}):
        assert ask_with(token({**good, **wrong}), options).status == 401


def test_optional_lets_pass_only_without_the_field(ask_with: Callable[..., Answer]) -> None:
    options = "algorithm='HS256', optional=True"
    assert ask_with("", options).json() == {"claims": None}
    assert ask_with("x", options).status == 401


def test_clocks_may_differ_by_the_leeway(ask_with: Callable[..., Answer]) -> None:
    late = token({"exp": time.time() - 5})
    assert ask_with(late, "algorithm='HS256', leeway=30").status == 200
    assert ask_with(late).status == 401


def test_the_document_says_that_it_is_a_jwt(document: Callable[..., Mapping[str, Any]]) -> None:
    made = document(
        "from treefold_http.auth import jwt\n"
        f"async def handler(claims=Depends(jwt({KEY!r}, algorithm='HS256'))): return 1"
    )
    assert made["components"]["securitySchemes"] == {
        "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
    }


def test_clients_may_send_another_word_than_bearer(
    project: Project, ask: Ask, document: Callable[..., Mapping[str, Any]]
) -> None:
    text = (
        "from treefold_http import Depends\nfrom treefold_http.auth import jwt\n"
        f"claims_of = jwt({KEY!r}, algorithm='HS256', scheme='Token')\n"
        "async def handler(claims=Depends(claims_of)): return {'sub': claims['sub']}"
    )
    app = project({"Api/v1/Get.py": text})

    def send(word: str) -> Answer:
        return ask(app, "GET", "/v1", headers=[("authorization", f"{word} {token()}")])

    assert send("Token").json() == send("token").json() == {"sub": "ann"}
    refused = send("Bearer")
    assert (refused.status, refused.fields("www-authenticate")) == (401, ["Token"])
    assert document(text)["components"]["securitySchemes"] == {
        "bearer": {"type": "http", "scheme": "token"}
    }
    with pytest.raises(ValueError, match="scheme must be one word such as 'Bearer' or 'Token'"):
        jwt(KEY, algorithm="HS256", scheme="My Token")


def test_the_key_may_be_one_of_the_settings(project: Project, ask: Ask) -> None:
    text = (
        "from treefold_http import Depends, Settings\nfrom treefold_http.auth import jwt\n"
        "def key(settings: Settings): return settings.secret_key\n"
        "claims_of = jwt(key, algorithm='HS256')\n"
        "async def handler(claims=Depends(claims_of)): return {'sub': claims['sub']}"
    )
    headers = [("authorization", f"Bearer {token(key=FORMER)}")]
    for secret, status in ((FORMER, 200), (KEY, 401), ("short", 500)):
        app = project({"Api/v1/Get.py": text}, settings=Settings(secret_key=secret))
        assert ask(app, "GET", "/v1", headers=headers).status == status


@pytest.mark.parametrize(
    ("key", "algorithm", "message"),
    [
        ("short", "HS256", r"jwt key for 'HS256' must have at least 32 bytes, got 5"),
        ("k" * 63, "HS512", r"at least 64 bytes, got 63"),
        (PUBLIC_PEM, "HS256", r"jwt for 'HS256' needs a shared secret, got a PEM key"),
        (KEY, "RS256", r"needs the public key as PEM"),
        (PRIVATE_PEM, "RS256", r"needs the public key as PEM"),
        (KEY, "none", r"must be one such as 'HS256' or 'RS256', got 'none'"),
        ([], "HS256", r"must be a key, or a list of at least one"),
    ],
    ids=["short", "short for HS512", "PEM", "no PEM", "private", "no algorithm", "none"],
)
def test_a_key_that_does_not_fit_is_refused_where_it_is_given(
    key: Any, algorithm: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        jwt(key, algorithm=algorithm)
    assert "BEGIN" not in str(caught.value)
