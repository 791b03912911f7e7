"""IP addresses, kept as text of one form."""

from __future__ import annotations

import ipaddress
from typing import Any, Literal, Unpack, overload

from treefold_orm._base.errors import ModelError
from treefold_orm._fields.base import NotNull, Nullable, T
from treefold_orm._fields.text import TextField

Protocol = Literal["both", "IPv4", "IPv6"]
_VERSIONS = {"both": (4, 6), "IPv4": (4,), "IPv6": (6,)}
_LONGEST = 39  # eight groups of four digits, and the colons between them


class GenericIPAddressField(TextField[T]):
    """An IPv4 or IPv6 address as a `str` of the one form that RFC 5952 names, `2001:db8::1`.

    Other spellings of an address and the objects of `ipaddress` are taken where a value is
    written or looked up. `protocol` is "both", "IPv4" or "IPv6"; with `unpack_ipv4` the address
    `::ffff:192.0.2.1` is kept as `192.0.2.1`. Text compares and sorts by its characters, on both
    databases.
    """

    has_form = True
    normalises = True

    @overload
    def __init__(
        self: GenericIPAddressField[str],
        *,
        max_length: int = _LONGEST,
        protocol: Protocol = "both",
        unpack_ipv4: bool = False,
        **options: Unpack[NotNull],
    ) -> None: ...
    @overload
    def __init__(
        self: GenericIPAddressField[str | None],
        *,
        max_length: int = _LONGEST,
        protocol: Protocol = "both",
        unpack_ipv4: bool = False,
        **options: Unpack[Nullable],
    ) -> None: ...
    def __init__(
        self,
        *,
        max_length: int = _LONGEST,
        protocol: Protocol = "both",
        unpack_ipv4: bool = False,
        **options: Any,
    ) -> None:
        if protocol not in _VERSIONS:
            raise ModelError(f"protocol={protocol!r} must be 'both', 'IPv4' or 'IPv6'")
        if unpack_ipv4 and protocol != "both":
            raise ModelError(f"unpack_ipv4 takes protocol='both', got protocol={protocol!r}")
        self._init_text(max_length, options)
        self.protocol = protocol
        self.unpack_ipv4 = unpack_ipv4
        # a value is compared in the one form of its address, so that choices need it as well
        if self.choices:
            self.choices = {self.coerce(value): label for value, label in self.choices.items()}

    def coerce(self, value: Any) -> str:
        if not isinstance(value, (ipaddress.IPv4Address, ipaddress.IPv6Address)):
            text = super().coerce(value)
            try:
                value = ipaddress.ip_address(text)
            except ValueError:
                raise self.build_value_error("not an IP address") from None
        if isinstance(value, ipaddress.IPv6Address):
            if value.scope_id is not None:
                raise self.build_value_error(
                    "an IP address with a zone, which names a device of one machine"
                )
            if self.unpack_ipv4 and value.ipv4_mapped is not None:
                value = value.ipv4_mapped
        if value.version not in _VERSIONS[self.protocol]:
            raise self.build_value_error(f"not an {self.protocol} address")
        return _format_address(value)


def _format_address(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    """Return the text of RFC 5952, section 5: Python writes `::ffff:192.0.2.1` only from 3.13."""
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return f"::ffff:{address.ipv4_mapped}"
    return str(address)
