"""Which keys are sensitive (rulings, 'Log line'; S-83)."""

from collections.abc import Iterator

import pytest
from hypothesis import given, strategies as st

from treefold_logging import is_sensitive
from treefold_logging._words import (
    CONTAINED,
    LONGEST_KEPT,
    MAX_VERDICTS,
    WHOLE,
    add_sensitive_words,
    added_words,
    harmless,
    is_sensitive_in_query,
    make_sensitivity_test,
    verdicts,
)

RULED_CONTAINED = (
    *("password", "passwd", "passphrase", "passcode", "secret", "token", "authorization"),
    *("apikey", "accesskey", "privatekey", "signingkey", "encryptionkey", "credential", "cookie"),
    *("sessionid", "csrf", "xsrf", "jwt", "bearer", "cardnumber", "creditcard", "signature"),
    "connectionstring",
)
RULED_WHOLE = (
    *("pwd", "pass", "pin", "auth", "sid", "pan", "otp", "totp", "ssn", "iban", "cvv", "cvc"),
    "dsn",
)


@pytest.mark.parametrize("word", RULED_CONTAINED)
def test_ruled_words_are_sensitive_anywhere_in_a_key(word: str) -> None:
    assert is_sensitive(word)
    assert is_sensitive(f"my_{word.upper()}_2")


@pytest.mark.parametrize("word", RULED_WHOLE)
def test_ruled_short_words_are_sensitive_only_as_the_whole_key(word: str) -> None:
    assert is_sensitive(f"_{word.title()}-")
    assert not is_sensitive(f"x{word}x")


@pytest.mark.parametrize(
    "key",
    [
        *("PassWord", "pass-word", "p\u0061ssword", "old_password", "X-Api-Key", "refresh_token"),
        *("\uff50\uff41ssword", "pass\u200bword", "user[password]", "user.password", "Set-Cookie"),
        *("Proxy-Authorization", "pa\u017f\u017fword", "DATABASE_URL", "SAMLResponse"),
        *("code_verifier", "client_assertion", "user[pin]", "card.cvv", "cards[0][cvc]"),
        "\uff30\uff29\uff2e",
    ],
)
def test_s83_every_spelling_of_a_sensitive_key_is_found(key: str) -> None:
    assert is_sensitive(key)


@pytest.mark.parametrize(
    "key",
    [
        *("author", "monkey", "classname", "businessname", "footprint", "shipping", "passenger"),
        *("pinned", "side", "expand", "company", "key", "session", "refresh", "salt", "", "id"),
        *("user[name]", "address.street", "[]", ".", "authority.name"),
    ],
)
def test_s83_ordinary_keys_are_not_sensitive(key: str) -> None:
    assert not is_sensitive(key)


def test_the_lists_hold_the_ruled_words_and_no_word_twice() -> None:
    assert set(RULED_CONTAINED) <= set(CONTAINED)
    assert set(RULED_WHOLE) <= WHOLE
    assert len(set(CONTAINED)) == len(CONTAINED)


@given(st.text(), st.sampled_from(RULED_CONTAINED), st.text())
def test_text_around_a_word_never_hides_it(before: str, word: str, after: str) -> None:
    assert is_sensitive(f"{before}-{word}-{after}")


def test_verdicts_are_kept_for_a_bounded_number_of_keys() -> None:
    for number in range(MAX_VERDICTS * 2):
        is_sensitive(f"key_{number}")
    assert len(verdicts) <= MAX_VERDICTS


def test_verdicts_of_long_keys_are_not_kept() -> None:
    key = "k" * (LONGEST_KEPT + 1)
    assert not is_sensitive(key)
    assert key not in verdicts


def test_additional_words_only_add() -> None:
    verdict = make_sensitivity_test(["Nick-Name"])
    assert verdict("old_nickname")
    assert verdict("password")
    assert not verdict("name")


def test_one_additional_word_may_be_a_bare_string() -> None:
    verdict = make_sensitivity_test("plate")
    assert verdict("number_plate")
    assert not verdict("tea")


@pytest.mark.parametrize("word", ["", "--", "\u200b"])
def test_an_additional_word_without_letters_adds_nothing(word: str) -> None:
    assert not make_sensitivity_test([word])("name")


@pytest.mark.parametrize(
    "key",
    ["passwort", "Passwort_alt", "neues-passwort", "contraseña", "CONTRASEN\u0303A", "contrasena2"],
)
def test_words_of_other_languages_are_sensitive_anywhere(key: str) -> None:
    assert is_sensitive(key)
    assert is_sensitive_in_query(key)


@pytest.mark.parametrize("name", ["code", "state", "sig", "key", "Code", "_key", "s-i-g"])
def test_some_names_are_sensitive_in_a_query_only(name: str) -> None:
    assert is_sensitive_in_query(name)
    assert not is_sensitive(name)


@pytest.mark.parametrize(
    "name", ["zipcode", "codes", "country_code", "keyword", "user[key]", "design"]
)
def test_they_are_whole_names(name: str) -> None:
    assert not is_sensitive_in_query(name)


@pytest.fixture
def added() -> Iterator[None]:
    yield
    added_words.clear()
    verdicts.clear()
    harmless.clear()


@pytest.mark.usefixtures("added")
def test_words_are_added_for_the_whole_process() -> None:
    assert not is_sensitive("Kunden-Nummer")
    add_sensitive_words(["kundennummer", "Plate"])
    add_sensitive_words([])
    assert is_sensitive("Kunden-Nummer")
    assert is_sensitive("number_plates")
    assert not is_sensitive("nummer")


@pytest.mark.parametrize("word", ["", "-", " _ "])
def test_a_word_without_a_letter_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="must have a letter or a digit, got"):
        add_sensitive_words([word])
