"""Settings of the lock of the API: the table `[contract]`.

Names, types and ranges only; `treefold contract` and `treefold dev` apply them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from treefold_http._runtime.boot_report import SettingsError

_VERDICTS = ("breaking", "weaker", "warning", "source", "compatible")
_AS_IT_IS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractSettings:
    """The settings of `treefold contract`.

    Attributes:
        auto: write `routes.lock` again when `treefold dev` has loaded a change.
        min_held: the share of typed answers, in percent, that must be checked at run time.
        min_notice_days: days that must lie between the announcement of a sunset and the sunset.
        severity: rules of the contract to the verdict that they have here, such as
            `header-removed = "warning"`; the table `[contract.severity]`.
    """

    auto: bool = False
    min_held: int = 0
    min_notice_days: int = 0
    severity: Mapping[str, str] = field(default_factory=lambda: _AS_IT_IS)

    def __post_init__(self) -> None:
        if not 0 <= self.min_held <= 100:
            raise SettingsError(
                f"Setting contract.min_held must be from 0 to 100, got {self.min_held!r}"
            )
        if self.min_notice_days < 0:
            raise SettingsError(
                "Setting contract.min_notice_days must be a number from 0, got"
                f" {self.min_notice_days!r}"
            )
        for rule, verdict in self.severity.items():
            if verdict not in _VERDICTS:
                raise SettingsError(
                    f"Setting contract.severity.{rule} must be one of {', '.join(_VERDICTS)}, got"
                    f" {verdict!r}"
                )
