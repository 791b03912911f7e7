"""How many answers are held: checked at run time against the type that the lock has for them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treefold_contract import Lock

_UNKNOWN = "any"


@dataclass(frozen=True, slots=True)
class HeldShare:
    """The answers of success that have a body of a type, or whose body is not known.

    Attributes:
        held: those that are checked at run time.
        declared: those whose type is only written down.
        unknown: the routes whose answer has no type, such as `GET /v1/user`.
    """

    held: int
    declared: int
    unknown: tuple[str, ...]

    @property
    def percent(self) -> float:
        """The share that is held; 100 where there is no such answer."""
        total = self.held + self.declared + len(self.unknown)
        return 100 * self.held / total if total else 100.0

    def describe(self) -> str:
        """Return the share in words."""
        total = self.held + self.declared + len(self.unknown)
        return f"{self.held} of {total} answers are checked at run time ({self.percent:.0f} %)"


def measure_held(lock: "Lock") -> HeldShare:
    """Return the share of a lock."""
    success = [
        (route, answer)
        for route in lock.routes
        for answer in route.answers
        if answer.status < "400" and answer.status != "default"
    ]
    typed = [answer for _, answer in success if answer.type is not None]
    held = sum(answer.is_checked for answer in typed)
    unknown = dict.fromkeys(route.title for route, answer in success if answer.media == _UNKNOWN)
    return HeldShare(held, len(typed) - held, tuple(unknown))
