"""Settings of the server `treefold serve`: the table `[serve]`, `TREEFOLD_SERVE_<NAME>`.

Names, types and ranges only; `settings` reads them, and the server applies them. Another server
has options of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from treefold_http._runtime.boot_report import SettingsError

SERVE_PREFIX = "TREEFOLD_SERVE_"
"""Begins the variable of a setting of the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """The settings of `treefold serve`.

    Attributes:
        send_timeout: seconds over which a client must read while bytes of a response wait for it;
            without progress in them the connection is closed.
        send_rate: the fewest bytes a second, on average over `send_timeout`, that such a client
            must read; 0 accepts any progress.
    """

    send_timeout: float = 60.0
    send_rate: int = 500

    def __post_init__(self) -> None:
        if not 0 < self.send_timeout < math.inf:
            raise SettingsError(
                f"Setting serve.send_timeout must be a number above 0, got {self.send_timeout!r}"
            )
        if self.send_rate < 0:
            raise SettingsError(
                f"Setting serve.send_rate must be a number from 0, got {self.send_rate!r}"
            )
