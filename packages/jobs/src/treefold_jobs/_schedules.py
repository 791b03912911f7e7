"""Schedules: the list `schedules` in `schedules.py` of a project, which workers read."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any, ParamSpec, cast

from treefold_jobs._call import Call, build_checked_call
from treefold_jobs._engine import require_pgqueuer
from treefold_orm import ConfigurationError

P = ParamSpec("P")

MODULE = "schedules"


class Schedule:
    """A job that is enqueued again and again.

    A due schedule whose last job still waits or runs is passed over.

    Args:
        cron: minute, hour, day of the month, month, day of the week, in UTC: `"0 6 * * 1-5"`.
        fn: a function of a module, as for `enqueue`.
        args: JSON, as `kwargs`.

    Raises:
        TypeError: the function or an argument cannot be kept.
        ConfigurationError: `cron` cannot be read, or PgQueuer is not installed.
    """

    __slots__ = ("call", "cron")

    def __init__(
        self, cron: str, fn: Callable[P, Any], /, *args: P.args, **kwargs: P.kwargs
    ) -> None:
        self.cron = cron
        self.call: Call = build_checked_call(fn, args, kwargs).copy()
        _check_cron(cron)

    @property
    def name(self) -> str:
        """A name that no other schedule of a project has, unless it does the same."""
        return f"{self.call.to_json()} {self.cron}"

    def __repr__(self) -> str:
        return f"Schedule({self.cron!r}, {self.call.function})"


def _check_cron(cron: Any) -> None:
    require_pgqueuer()
    from pgqueuer.core.sm import SchedulerManager

    try:
        # the parser of PgQueuer, so that what passes here is what a worker takes
        SchedulerManager(cast("Any", None)).schedule("check", cron)
    except (ValueError, TypeError, AttributeError):
        raise ConfigurationError(
            f"A schedule must have five fields of cron, such as '0 6 * * 1-5', got {cron!r}"
        ) from None


def load_schedules() -> list[Schedule]:
    """Return the schedules of the current project; none without a `schedules.py`.

    Raises:
        ConfigurationError: the module holds something else, or one schedule twice.
    """
    # looked for first: an ImportError inside of schedules.py must not pass for a missing one
    if importlib.util.find_spec(MODULE) is None:
        return []
    declared: Any = getattr(importlib.import_module(MODULE), MODULE, None)
    if not isinstance(declared, list):
        raise ConfigurationError("schedules.py must set schedules = [Schedule(...), ...]")
    found: dict[str, Schedule] = {}
    for one in cast("list[Any]", declared):
        if not isinstance(one, Schedule):
            raise ConfigurationError(f"schedules must hold Schedule objects, got {one!r}")
        if one.name in found:
            raise ConfigurationError(f"{one!r} is declared twice; remove one of the two")
        found[one.name] = one
    return list(found.values())
