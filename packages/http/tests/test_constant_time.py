"""Secrets are compared in constant time wherever the package compares them (S-69)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import treefold_http
from treefold_http._sessions.signing import Signer

FOLDER = Path(treefold_http.__file__).parent
SECRET = re.compile(r"(token|signature|digest|secret|password|api_?key|mac)s?$", re.IGNORECASE)
PLAIN = {"tokens == -1"}
"""Comparisons with a constant that stands for nothing."""


def compared() -> Iterator[tuple[str, str]]:
    """Every `==` and `!=` of a name that sounds like a secret: file and source."""
    for path in FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
                sides = [node.left, *node.comparators]
                names = [getattr(side, "id", getattr(side, "attr", "")) for side in sides]
                if any(SECRET.search(name) for name in names):
                    yield path.relative_to(FOLDER).as_posix(), ast.unparse(node)


def test_s69_no_secret_is_compared_with_an_operator() -> None:
    assert [each for each in compared() if each[1] not in PLAIN] == []


@pytest.mark.parametrize("place", [0, 20, 42])
def test_s69_a_signature_is_verified_whole(place: int) -> None:
    signer = Signer([b"k" * 32], ["test"])
    good = signer.sign_data(b"data")
    wrong = "A" if good[place] != "A" else "B"
    assert signer.verify_signature(b"data", good)
    assert not signer.verify_signature(b"data", good[:place] + wrong + good[place + 1 :])
    assert not signer.verify_signature(b"data", good[:place])
