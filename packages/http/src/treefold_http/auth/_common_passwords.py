"""Which passwords are common: words that people choose, and what they do to them.

A list of passwords is always too short. `common_words.txt` lists words, written for this package;
the rules here undo what people do to a word, so that each word stands for thousands of passwords:

    Password2024!  ->  password  (a capital, a year, a sign)
    p@$$w0rd       ->  password  (signs in place of letters)
    drowssap, passwordpassword, Summer-Dragon1, 1qaz2wsx, abcabcabc, 19870412
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from importlib.resources import files

_SIGNS = {"@": "a", "4": "a", "8": "b", "3": "e", "0": "o", "$": "s", "5": "s", "7": "t", "+": "t"}
_LEET = str.maketrans({**_SIGNS, "1": "i", "!": "i", "2": "z"})
_OTHER_LEET = str.maketrans({**_SIGNS, "1": "l", "!": "l", "9": "g", "6": "g"})
_ROWS = (
    *("`1234567890-=", "qwertyuiop[]", "asdfghjkl;'", "zxcvbnm,./"),
    *("!@#$%^&*()_+", "qwertzuiopü", "azertyuiop", "yxcvbnm", "12qwaszx"),
    *("1qaz", "2wsx", "3edc", "4rfv", "5tgb", "6yhn", "7ujm", "8ik,", "9ol.", "0p;/"),
    *(
        "1q2w3e4r5t6y7u8i9o0p",
        "q1w2e3r4t5y6u7i8o9p0",
        "qawsedrftgyhujikolp",
        "qazwsxedcrfvtgbyhnujm",
    ),
    *("abcdefghijklmnopqrstuvwxyz", "01234567890", "741852963", "147258369", "159753", "951753"),
)
_SHORTEST_WALK = 3
"""Keys in a row that count as a walk over the keyboard: `qwe`."""
_FEWEST_DIGITS = 4
"""Digits from which on a password counts as a number."""
_LONGEST_PAIR = 16
"""Characters up to which two common words in a row are looked for."""
_MOST_AROUND = 6
"""Signs and digits around a word that do not make it less common."""


def is_common(password: str) -> bool:
    """Return True for a password that is among the first that an attacker tries."""
    text = unicodedata.normalize("NFKC", password).casefold().strip()
    if not text or _is_mostly_digits(text) or _is_repetition(text) or _is_keyboard_walk(text):
        return True
    if _is_guessable_word(text) or any(_is_guessable_word(stem) for stem in _find_stems(text)):
        return True
    return len(text) <= _LONGEST_PAIR and any(_is_pair_of_words(stem) for stem in _find_stems(text))


def _is_mostly_digits(text: str) -> bool:
    """Return True for digits, with at most two other characters: `19870412`, `a123456`."""
    digits = sum(map(str.isdecimal, text))
    return digits >= len(text) - 2 and digits >= _FEWEST_DIGITS


def _find_stems(text: str) -> set[str]:
    """Return what is left of a password without what people add to a word."""
    found: set[str] = set()
    # two tables, since `1` and `!` are both `i` and `l` (`p1zza`, `1ove`)
    for plain in (text, text.translate(_LEET), text.translate(_OTHER_LEET)):
        found.add(_keep_letters(plain))
    # First what is around the word, then signs in it: `translate` alone makes `summer2024`
    # `summerzoza` and hides the word.
    bare = re.sub(rf"^[\W\d_]{{0,{_MOST_AROUND}}}|[\W\d_]{{0,{_MOST_AROUND}}}$", "", text)
    for plain in (bare, bare.translate(_LEET), bare.translate(_OTHER_LEET)):
        found.add(plain)
        found.add(plain[::-1])
        found.add(plain.removesuffix("s"))
        found.add(plain.removesuffix("er"))
    return {stem for stem in found if len(stem) >= _SHORTEST_WALK}


def _keep_letters(text: str) -> str:
    """Return the text without signs and digits, if they are few."""
    letters = re.sub(r"[\W\d_]", "", text)
    return letters if len(text) - len(letters) <= _MOST_AROUND else ""


def _is_guessable_word(text: str) -> bool:
    if text in _load_words() or _is_repetition(text):
        return True
    return len(text) > _SHORTEST_WALK and _is_keyboard_walk(text)


def _is_pair_of_words(text: str) -> bool:
    words = _load_words()
    return any(text[:cut] in words and text[cut:] in words for cut in range(2, len(text) - 1))


def _is_repetition(text: str) -> bool:
    """Return True for one unit that is repeated, or very few characters."""
    if len(set(text)) <= 2:
        return True
    return any(
        len(text) % size == 0
        and text[:size] * (len(text) // size) == text
        and (size <= 4 or text[:size] in _load_words())
        for size in range(1, len(text) // 2 + 1)
    )


def _is_keyboard_walk(text: str) -> bool:
    """Return True if a text consists of walks over a keyboard, each of three characters or more."""
    place = 0
    while place < len(text):
        length = _measure_keyboard_walk(text, place)
        if length < _SHORTEST_WALK:
            return False
        place += length
    return True


def _measure_keyboard_walk(text: str, place: int) -> int:
    longest = 0
    for row in _list_keyboard_rows():
        # only a longer walk than that of the rows before is of interest
        length = longest + 1
        while place + length <= len(text) and text[place : place + length] in row:
            longest = length
            length += 1
    return longest


@cache
def _list_keyboard_rows() -> tuple[str, ...]:
    return (*_ROWS, *(row[::-1] for row in _ROWS))


@cache
def _load_words() -> frozenset[str]:
    text = files(__package__ or "").joinpath("common_words.txt").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return frozenset(word for line in lines for word in line.split())
