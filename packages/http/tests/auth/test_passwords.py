"""Passwords: hashes that name their cost, the same time for everybody, work off the event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from treefold_http.auth import (
    _passwords,
    ahash_password,
    averify_password,
    hash_password,
    verify_password,
)

METHODS = ["scrypt", *(["argon2"] if find_spec("argon2") else [])]
OLD = "$scrypt$ln=4,r=8,p=1$c2FsdHNhbHRzYWx0c2FsdA$"


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Hash as with and without the extra."""
    if request.param == "scrypt":
        monkeypatch.setattr(_passwords, "_find_argon2_hasher", lambda: None)
        monkeypatch.setattr(_passwords, "_SCRYPT_COST", 12)  # the cost of today takes seconds here
    _passwords._make_dummy_hash.cache_clear()
    yield request.param
    _passwords._make_dummy_hash.cache_clear()


def old_hash(password: str) -> str:
    digest = _passwords._hash_with_scrypt(password.encode(), b"saltsaltsaltsalt", 4, 8, 1)
    return OLD + _passwords._encode_base64(digest)


def test_a_password_is_verified_against_its_hash_and_no_other(method: str) -> None:
    one, other = hash_password("pässword"), hash_password("pässword")
    assert one != other  # each has a salt of its own
    assert one.startswith(f"${method}")
    assert "pässword" not in one
    assert verify_password("pässword", one)
    assert verify_password("pa\u0308ssword", one)  # as another keyboard composes it
    for wrong in ("Pässword", "pässword ", "", "\0", "x" * 2000, "p\ud800"):
        check = verify_password(wrong, one)
        assert (bool(check), check.new_hash) == (False, None)


def test_a_hash_of_today_is_kept_and_an_old_one_replaced(method: str) -> None:
    assert verify_password("a", hash_password("a")).new_hash is None
    check = verify_password("a", old_hash("a"))
    assert check
    assert check.new_hash is not None
    assert check.new_hash.startswith(f"${method}")
    assert verify_password("a", check.new_hash).new_hash is None
    assert verify_password("b", old_hash("a")).new_hash is None


def test_s69_an_unknown_user_takes_as_long_as_a_wrong_password(method: str) -> None:
    known = hash_password("a")
    verify_password("b", None)  # makes the hash that is compared with

    def seconds(hashed: str | None) -> float:
        begun = time.process_time()
        assert not verify_password("b", hashed)
        return time.process_time() - begun

    wrong, unknown = (min(seconds(h) for _ in range(3)) for h in (known, None))
    assert 0.5 < unknown / wrong < 2


@pytest.mark.parametrize(
    "hashed", ["", "plain", "$2b$12$abc", "$scrypt$", "$scrypt$ln=a,r=8,p=1$a$b"]
)
def test_a_hash_of_an_unknown_method_is_an_error_that_does_not_show_it(hashed: str) -> None:
    with pytest.raises(
        ValueError, match=r"must begin with '\$argon2' or '\$scrypt', got method"
    ) as e:
        verify_password("a", hashed)
    assert "abc" not in str(e.value)


@pytest.mark.parametrize("password", ["", "x" * 1025])
def test_a_password_of_no_sensible_length_is_not_hashed(password: str) -> None:
    with pytest.raises(ValueError, match="must have 1 to 1024 characters, got"):
        hash_password(password)


def test_a_password_far_too_long_costs_nothing() -> None:
    hashed, long = hash_password("a"), "x" * 10_000_000
    begun = time.process_time()
    assert not verify_password(long, hashed)
    assert time.process_time() - begun < 0.02


def test_hashing_does_not_hold_up_the_event_loop() -> None:
    async def main() -> None:
        turns = 0

        async def watch() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0.001)
                turns += 1

        watching = asyncio.ensure_future(watch())
        hashed = await ahash_password("a")
        checks = await asyncio.gather(
            *(averify_password(p, hashed) for p in "ab" * 2), averify_password("a", None)
        )
        watching.cancel()
        assert [bool(check) for check in checks] == [True, False] * 2 + [False]
        assert turns > 5  # the loop ran on between two hashes and inside each

    asyncio.run(main())
