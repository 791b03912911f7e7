"""Rules for new passwords: length, commonness, likeness to what others know of the user."""

from __future__ import annotations

import asyncio
import base64
import random
from typing import Any

import pytest

from treefold_http.auth import PasswordRules, WeakPassword, ahash_password, hash_password
from treefold_http.auth._common_passwords import is_common

GOOD = "plover-tamarind-oxbow"


@pytest.mark.parametrize(
    "password",
    [
        *(
            "password",
            "Password",
            "PASSWORD1",
            "p@ssw0rd",
            "P@$$w0rd!",
            "Password2024!",
            "drowssap",
        ),
        *(
            "passwordpassword",
            "iloveyou2",
            "Summer2025",
            "letmein",
            "letm31n",
            "trustno1",
            "dragon99",
        ),
        *(
            "SummerDragon1",
            "jennifer88",
            "!Michael!",
            "qwerty",
            "qwertyuiop",
            "1qaz2wsx",
            "asdfghjkl",
        ),
        *("zaq1xsw2", "1q2w3e4r5t", "abc123", "abcd1234", "aaaaaaaa", "abababab", "xyzxyzxyz"),
        *("12345678", "19870412", "0612345678", "a1234567", "123456a", "q1w2e3r4", "!@#$%^&*"),
        *("geheim123", "motdepasse", "contraseña1", "", "    "),
    ],
)
def test_what_an_attacker_tries_first_is_common(password: str):
    assert is_common(password)


@pytest.mark.parametrize(
    "password",
    [
        *(GOOD, "correct horse battery staple", "tr0ub4dor&3-elk", "Vq81mTJt5oYw", "h7#kPz!2wQ"),
        *("the fog comes on little cat feet", "ÆØÅ-sild-på-brød", "пар-над-озером-41"),
    ],
)
def test_a_password_that_no_rule_makes_is_not_common(password: str):
    assert not is_common(password)


def test_passwords_at_random_are_not_common():
    lot = random.Random(7)  # of 60,000, one is mistaken for a word with signs in it
    drawn = (base64.urlsafe_b64encode(lot.randbytes(9)).decode() for _ in range(3000))
    assert not list(filter(is_common, drawn))
    # of lower case only, which rules could mistake for words
    made = ("".join(lot.choices("abcdefghijklmnopqrstuvwxyz", k=12)) for _ in range(3000))
    assert not list(filter(is_common, made))


def faults(rules: PasswordRules, password: str, **attributes: str | None) -> list[str]:
    return [fault.type for fault in rules.faults(password, attributes)]


def test_the_shortest_password_has_eight_characters_unless_said_otherwise():
    assert faults(PasswordRules(), "h7#kPz!") == ["password_too_short"]
    assert faults(PasswordRules(), "h7#kPz!2") == []
    assert faults(PasswordRules(min_length=15), "h7#kPz!2wQ") == ["password_too_short"]
    assert faults(PasswordRules(allow_common=True), "password") == []


@pytest.mark.parametrize(
    ("password", "value"),
    [
        ("ann.lee@example.com", "ann.lee@example.com"),
        ("wolfeschlegel", "wolfeschlegel@example.com"),
        ("Wolfeschlegel7", "Anna Wolfeschlegel"),
        ("legelhcseflow", "wolfeschlegel"),
        ("plovertamarind1", "plover_tamarind"),
    ],
)
def test_a_password_like_an_attribute_is_refused(password: str, value: str):
    assert faults(PasswordRules(), password, email=value) == ["password_too_similar"]
    assert faults(PasswordRules(), GOOD, email=value.replace("plover", "x"), name=None) == []


def test_an_attribute_in_a_long_password_is_no_likeness():
    assert faults(PasswordRules(), "ann plays chess in the rain", name="Ann") == []


def test_a_weak_password_is_a_422_with_each_reason():
    with pytest.raises(WeakPassword) as caught:
        hash_password(
            "dragon", rules=PasswordRules(loc=("body", "new")), attributes={"nick": "dragon"}
        )
    error = caught.value
    assert (error.status, error.message) == (422, "Choose a password of at least 8 characters")
    assert error.errors is not None
    assert [(one["loc"], one["type"]) for one in error.errors] == [
        (("body", "new"), "password_too_short"),
        (("body", "new"), "password_too_common"),
        (("body", "new"), "password_too_similar"),
    ]
    assert "dragon" not in str(error.errors)


def test_rules_are_asked_only_where_they_are_given():
    assert hash_password("dragon").startswith("$")
    assert asyncio.run(ahash_password(GOOD, rules=PasswordRules())).startswith("$")
    with pytest.raises(WeakPassword):
        asyncio.run(ahash_password("dragon", rules=PasswordRules()))
    with pytest.raises(ValueError, match="1 to 1024 characters"):
        hash_password("x" * 2000, rules=PasswordRules())


@pytest.mark.parametrize("wrong", [{"min_length": 0}, {"max_similarity": 0}, {"max_similarity": 2}])
def test_rules_that_are_none_are_refused(wrong: dict[str, Any]):
    with pytest.raises(ValueError, match=f"PasswordRules {next(iter(wrong))} must be"):
        PasswordRules(**wrong)
