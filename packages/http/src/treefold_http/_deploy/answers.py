"""Answers: members of declared types that no client should get."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator

from treefold_http._deploy.deployment import Deployment, ServedRoute, normalize_name
from treefold_http._deploy.finding import Finding, make_kinds
from treefold_http._deploy.members import walk_members
from treefold_http._types import tree
from treefold_http._types.parameters import EMPTY, InjectionError
from treefold_http._types.read import parse_annotation, resolve_return_annotation

KINDS = make_kinds(
    """
    severe response-secret: an answer has a member that no client should get;
      an attacker collects the hashes of passwords and finds the passwords at home, or uses the
      secret
    """
)
(SECRET,) = KINDS

_PARTS = ("password", "passwd", "passphrase", "privatekey")
_WHOLE = frozenset({"pwd", "ssn", "cvv", "cvc"})
_SHOWN_ONCE = frozenset({"secret", "secretkey", "clientsecret", "totpsecret"})
"""Secrets that a `POST` may answer with: it has made them, and shows them this once."""


def check_response_secrets(deployment: Deployment) -> Iterator[Finding]:
    """Find secrets in response models and return annotations."""
    for served in deployment.loaded_routes:
        words = _WHOLE if served.route.method == "POST" else _WHOLE | _SHOWN_ONCE
        nodes = _yield_response_types(served)
        names = [name for node in nodes for name in _find_secret_members(node, words)]
        for name in dict.fromkeys(names):
            text = f"the answer of {served.display_name} has the member {name!r}"
            write = f"response_model = ...  # a type without {name}"
            yield SECRET.make_finding(served.file_path, text, write)


def _yield_response_types(served: ServedRoute) -> Iterator[tree.TypeNode]:
    if served.contract.outputs:
        yield from (output.type for output in served.contract.outputs)
        return
    handler = inspect.unwrap(served.module.handler)
    try:
        annotation = getattr(handler, "__annotations__", {}).get("return", EMPTY)
        yield parse_annotation(resolve_return_annotation(annotation, handler))
    except (InjectionError, NameError):  # a name that is imported for the type checker only
        return


def _find_secret_members(node: tree.TypeNode, words: Collection[str]) -> Iterator[str]:
    for member in walk_members(node):
        name = normalize_name(member.written_as)
        is_secret = name in words or any(part in name for part in _PARTS)
        if member.is_output and is_secret and _may_hold_secret(member.type):
            yield member.written_as


def _may_hold_secret(node: tree.TypeNode) -> bool:
    """Return True if a value may be the secret itself; a flag or a date is not."""
    options = tree.list_direct_union_options(node)
    kinds = {each.bare_annotation for each in options} - {type(None), None}
    dates = [kind for kind in kinds if getattr(kind, "__name__", "") in _DATES]
    return not kinds <= {bool} and not dates


_DATES = ("date", "datetime", "time")
