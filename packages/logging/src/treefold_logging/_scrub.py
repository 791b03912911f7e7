"""Remove secrets from text: credentials in known forms, and values of sensitive keys.

A pattern starts at a literal or at the start of a word, and from there it either cannot fail or
reads a bounded number of characters, so that the time is linear in the length of the text (S-88).
Each pattern runs only after a substring search has found its literal. A line of the form
`#   text -> scrubbed` above a pattern is an example, which `test_scrub.py` runs.
"""

import re

from treefold_logging._graphql import looks_like_graphql_selection, mask_sensitive_graphql_arguments
from treefold_logging._words import is_sensitive

# Up to the end marker, or to the end of a text that was cut before it.
#   key -----BEGIN KEY----- MIIB -----END KEY----- end -> key *** end
_PEM = re.compile(
    r"-----BEGIN [A-Z0-9 ]{1,64}-----.*?(?:-----END [A-Z0-9 ]{1,64}-----|\Z)", re.DOTALL
)

# The user may be missing (Redis). Digits before a delimiter are a port, not a password.
#   postgres://app:hunter2@db:5432/shop -> postgres://app:***@db:5432/shop
#   http://localhost:8000/a@b -> http://localhost:8000/a@b
_USERINFO = re.compile(
    r"""(://[^\s/:@"'<>]{0,128}):(?!\d{1,5}(?:[/?\#,\s"']|\Z))[^\s"'<>]{1,512}@"""
)

# The rest of the line, or of the quoted value.
#   Cookie: sid=abc; theme=dark -> Cookie: ***
#   {"Cookie": "sid=abc", "x": 1} -> {"Cookie": "***", "x": 1}
_COOKIE = re.compile(
    r"""([Cc](?i:ookie)\d?\\?["']?[ \t]{0,8}:[ \t]{0,8})"""
    r"""(?:(")[^"\r\n]*+|(')[^'\r\n]*+|[^\r\n"']++)"""
)

# A quoted value; or a scheme, one word, and the parameters that follow (Digest).
#   Authorization: Digest username="u", response="9f" -> Authorization: ***
#   Authorization: Token abc end -> Authorization: *** end
_AUTHORIZATION = re.compile(
    r"""([Aa](?i:uthorization)\\?["']?[ \t]{0,8}[:=][ \t]{0,8})"""
    r"""(?:(")[^"\r\n]*+|(')[^'\r\n]*+"""
    r"""|[^\s,;"'\\]++(?:[ \t]++[^\s,;"'\\]++)?+(?:"[^"\r\n]*+"?+)?+"""
    r"""(?:[,;][ \t]*+[\w-]++=[^\s,;"'\\]*+(?:"[^"\r\n]*+"?+)?+)*+)"""
)

# 'Missing bearer token' is prose.
#   sent bearer 0a1b2c to x -> sent bearer *** to x
_BEARER = re.compile(
    r"""([Bb](?i:earer)(?:\s|%20|\+){1,8})(?!tokens?\.?(?:[\s"',;)]|\Z))[\w.~+/=:%-]++"""
)

# 'Basic authentication' is prose too: base64 of a name and a password is not all lower case.
#   sent Basic dTpw to x -> sent Basic *** to x
_BASIC = re.compile(
    r"""([Bb](?i:asic)(?:\s|%20|\+){1,8})(?![a-z]+(?:[^\w+/=-]|\Z))[\w+/=%-]{4,}+"""
)

# 'eyJ' is '{"' in base64. The run is taken whole, so no second start lies inside it. A dot may be
# percent-encoded, as often as a URL is nested.
#   got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln to x -> got *** to x
_JWT = re.compile(
    r"eyJ[\w-]*+((?:\.|%(?:25){0,3}2[Ee])[\w-]++)?+(?:(?:\.|%(?:25){0,3}2[Ee])[\w-]*+)*+", re.ASCII
)

# `password=...` as in a connection string, `"password": "..."` as in JSON inside a string. A quote
# behind backslashes is one in JSON inside JSON, '%3D' the '=' of a URL inside a URL. `_KEY` matches
# up to the separator, and `_VALUE` from there, if the key is sensitive.
#   password=hunter2 host=db -> password=*** host=db
#   {"password": "hunter2"} -> {"password": "***"}
#   {'password' : 'hunter2'} -> {'password' : '***'}
#   next=%2Flogin%3Ftoken%3Dabc -> next=%2Flogin%3Ftoken%3D***
_KEY = re.compile(
    r"""(?<![\w-])([\w-]++)"""
    r"""(?:[ \t]{0,4}=[ \t]{0,4}|%(?:25){0,3}3[Dd]|\\{0,4}["'][ \t]{0,4}[:=][ \t]{0,4})"""
)
_VALUE = re.compile(
    r"""(")(?:[^"\\\r\n]|\\.)*+|(')(?:[^'\\\r\n]|\\.)*+"""
    r"""|(\\{1,4}["'])[^"'\r\n]*+|[^\s,;&"'(){}\[\]\\]++"""
)


# Three functions search for the literals, in conditions that are written out: a loop over a table
# takes longer, and nearly every text has no secret. They must agree:
#
#   secret           `scrub`          `json_may_...`         `plain_text_may_...`
#   _PEM             -----BEGIN       the same               the same
#   _USERINFO        ://              the same               -, has a colon
#   _COOKIE          cookie           the same               -, has a colon
#   _AUTHORIZATION   authorization    the same               =, or has a colon
#   _BEARER          bearer           the same               the same
#   _BASIC           basic            the same               the same
#   _JWT             eyJ              the same               the same
#   _KEY             =, ":, ':, 3d    =, \\", ':, % and 3d    =, % and 3d; others have a colon
#                    a blank and :    ' and a blank with :
#   GraphQL          { and :          { not at the start     -, has a colon
#
# One character is searched for before a longer literal that contains it: that takes a tenth.


def scrub(text: str) -> str:
    """Return the text with the secrets in it replaced by `***`.

    Found are `scheme://user:password@`, PEM blocks, `Bearer` and `Basic` credentials, the shapes of
    JWT, cookie and authorization headers written out, and `password=...` for every key that
    `is_sensitive`. Source: S-86, S-87.
    """
    # Blocks before lines before words: a later pattern must not cut an earlier one in two.
    if "N" in text and "-----BEGIN" in text:
        text = _PEM.sub("***", text)
    if "/" in text and "://" in text:
        text = _USERINFO.sub(r"\1:***@", text)
    lower = text.lower()
    if "cookie" in lower:
        text = _COOKIE.sub(r"\1\2\3***", text)
    if "authorization" in lower:
        text = _AUTHORIZATION.sub(r"\1\2\3***", text)
    if "bearer" in lower:
        text = _BEARER.sub(r"\1***", text)
    if "basic" in lower:
        text = _BASIC.sub(r"\1***", text)
    if "J" in text and "eyJ" in text:
        text = _JWT.sub(_mask_jwt_match, text)
    # a blank before the colon is rare in prose, and some writers of JSON put one there
    if (
        "=" in text
        or '":' in text
        or "':" in text
        or " :" in text
        or "\t:" in text
        or "3d" in lower
    ):
        text = _mask_sensitive_values(text)
    if (
        "{" in text and ":" in text and looks_like_graphql_selection(f'{text}"')
    ):  # with the quote of JSON
        text = mask_sensitive_graphql_arguments(text)
    return text


# For `scrub_header_values`. A field name has a hyphen, and prose with a colon rarely does: 'Invalid
# password: too short'. The second form is a pair of ASGI.
#   X-Api-Key: abc -> X-Api-Key: ***
#   (b'x-api-key', b'abc') -> (b'x-api-key', b'***')
_FIELD = re.compile(
    r"""(?<![\w-])([A-Za-z]\w{0,63}(?:-\w{1,64}){1,8})"""
    r"""(?:[ \t]{0,4}:[ \t]{0,8}|["'],[ \t]{0,4}b?(?=["']))"""
)


def scrub_header_values(text: str) -> str:
    """Return a message or traceback without the values of sensitive header fields in it.

    `X-Api-Key: ...` and `(b'x-api-key', b'...')`; the rest is that of `scrub`.
    """
    return _mask_sensitive_values(text, _FIELD) if "-" in text else text


def scrub_path(text: str) -> str:
    """Return a path with the secrets masked that have a form of their own: JWT and userinfo.

    Other rules of `scrub` would mask words: `/course/Basic%20Python` is no credential.
    """
    if "://" in text:
        text = _USERINFO.sub(r"\1:***@", text)
    return _JWT.sub(_mask_jwt_match, text) if "eyJ" in text else text


_NO_SECRETS = frozenset({"True", "False", "None", "true", "false", "null"})
"""Values that tell a reader something and an attacker nothing: `allow_credentials=True`."""


def json_may_contain_secret(json_text: str) -> bool:
    """Return True if a string inside a JSON text may hold a secret; False is certain.

    Faster than scrubbing every string. JSON writes all searched characters unescaped, except a
    quote, which gets a backslash.
    """
    if (
        "=" in json_text
        or ("\\" in json_text and '\\"' in json_text)
        or ("'" in json_text and ("':" in json_text or " :" in json_text))
        or ("/" in json_text and "://" in json_text)
        or ("%" in json_text and "3d" in json_text.lower())
        or (json_text.rfind("{") > 0 and looks_like_graphql_selection(json_text))
        or ("J" in json_text and "eyJ" in json_text)
        or ("N" in json_text and "-----BEGIN" in json_text)
    ):
        return True
    lower = json_text.lower()
    return "bearer" in lower or "basic" in lower or "authorization" in lower or "cookie" in lower


def plain_text_may_contain_secret(text: str) -> bool:
    """Return True if ASCII text without colon and backslash may hold a secret; False is certain.

    Text with a header holds a colon or `=`, text with a URL or a quoted key holds a colon.
    """
    if "=" in text or ("J" in text and "eyJ" in text) or ("N" in text and "-----BEGIN" in text):
        return True
    lower = text.lower()
    return "bearer" in lower or "basic" in lower or ("%" in text and "3d" in lower)


def _mask_jwt_match(match: re.Match[str]) -> str:
    return match[0] if match[1] is None else "***"


def _mask_sensitive_values(text: str, keys: re.Pattern[str] = _KEY) -> str:
    kept: list[str] = []
    done = 0
    for key in keys.finditer(text):
        # The value of an ordinary key is searched for keys too: it may be JSON.
        if key.start() >= done and is_sensitive(key[1]):
            value = _VALUE.match(text, key.end())
            if value is not None and value[0] not in _NO_SECRETS:
                kept += text[done : key.end()], *value.groups(""), "***"
                done = value.end()
    return "".join([*kept, text[done:]]) if kept else text
