"""Rules for new passwords: not too short, not common, and not like a name of their user.

`hash_password` asks them where they are given. A password that exists is never asked: rules change,
and its user must be able to log in.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import NamedTuple

from treefold_http._wire.errors import UnprocessableEntity

SHORTEST = 8
"""Characters of a password (NIST SP 800-63B, 3.1.1.2)."""
MOST_SIMILAR = 0.7
"""The ratio of `SequenceMatcher` from which on a password is too close to what is known of a user.
"""
_SHORTEST_PART = 3
"""Characters: shorter parts, such as the `com` of an address, say nothing of a user."""


class PasswordFault(NamedTuple):
    """One reason why a password is refused.

    Attributes:
        type: `password_too_short`, `password_too_common` or `password_too_similar`.
        msg: the reason, for the user.
    """

    type: str
    msg: str


class WeakPassword(UnprocessableEntity):
    """A password that the rules refuse: 422, with an entry for each reason in `errors`.

    Attributes:
        faults: the reasons.
    """

    def __init__(self, faults: Iterable[PasswordFault], *, loc: tuple[str, ...]) -> None:
        self.faults = tuple(faults)
        errors = [{"loc": loc, "msg": one.msg, "type": one.type} for one in self.faults]
        super().__init__(self.faults[0].msg, errors=errors)


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordRules:
    """Rules for new passwords.

    Attributes:
        min_length: the fewest characters.
        allow_common: True allows passwords that an attacker tries first.
        max_similarity: how similar a password may be to an attribute of its user, from 0 to 1.
        loc: the place in the errors of a `WeakPassword`.
    """

    min_length: int = SHORTEST
    allow_common: bool = False
    max_similarity: float = MOST_SIMILAR
    loc: tuple[str, ...] = ("body", "password")

    def __post_init__(self) -> None:
        if self.min_length < 1:
            message = f"PasswordRules min_length must be at least 1, got {self.min_length!r}"
            raise ValueError(message)
        if not 0 < self.max_similarity <= 1:
            raise ValueError(
                "PasswordRules max_similarity must be above 0 and at most 1, got"
                f" {self.max_similarity!r}"
            )

    def check(self, password: str, attributes: Mapping[str, str | None] | None = None) -> None:
        """Refuse a weak password.

        Args:
            password: the password that a user has chosen.
            attributes: what others know of the user, by name, such as `{"email": user.email}`.

        Raises:
            WeakPassword: with all reasons.
        """
        if faults := list(self.faults(password, attributes)):
            raise WeakPassword(faults, loc=self.loc)

    def faults(
        self, password: str, attributes: Mapping[str, str | None] | None = None
    ) -> Iterator[PasswordFault]:
        """Yield the reasons against a password; arguments as `check`."""
        # as it is hashed, so that full-width letters count as the plain ones
        text = unicodedata.normalize("NFKC", password)
        if len(text) < self.min_length:
            wanted = f"Choose a password of at least {self.min_length} characters"
            yield PasswordFault("password_too_short", wanted)
        if not self.allow_common:
            from treefold_http.auth._common_passwords import is_common  # reads its list

            if is_common(text):
                yield PasswordFault("password_too_common", "Choose a password that is less common")
        for name, value in (attributes or {}).items():
            if value and self._is_similar(text.casefold(), value.casefold()):
                words = name.replace("_", " ")
                msg = f"Choose a password that is less like your {words}"
                yield PasswordFault("password_too_similar", msg)

    def _is_similar(self, password: str, attribute: str) -> bool:
        # the parts too: of `ann.miller@example.com`, `miller1` is like one and not like the whole
        for part in {attribute, *re.split(r"\W+", attribute)}:
            if len(part) < _SHORTEST_PART:
                continue
            for text in (part, part[::-1]):
                if SequenceMatcher(None, password, text).ratio() >= self.max_similarity:
                    return True
                if text in password and len(text) >= self.max_similarity * len(password):
                    return True
        return False
