"""The table of `hatch run elsewhere`: under which conditions the quick suites and the pages hold.

Data only; `worlds.py` makes a condition true, `__main__.py` runs what its row names.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

Moment = Callable[[datetime], datetime]
"""The moment at which a suite shall begin, from the moment at which it does."""

QUICK = (
    "+package=router iso:test",
    "+package=logging iso:test",
    "+package=scaffold iso:test",
    "+package=server iso:pytest packages/server/tests/test_server.py",
    "+package=cli iso:pytest packages/cli/tests/checks packages/cli/tests/console"
    " packages/cli/tests/dev packages/cli/tests/commands/test_check.py"
    " packages/cli/tests/commands/test_create.py"
    " packages/cli/tests/commands/test_dev.py packages/cli/tests/commands/test_doctor.py"
    " packages/cli/tests/commands/test_new.py packages/cli/tests/commands/test_version.py",
    "pages",
)
"""Scripts of `hatch.toml`, as they are typed after `hatch run`."""

DATED = (
    *QUICK,
    "+package=http iso:pytest packages/http/tests/auth packages/http/tests/cache"
    " packages/http/tests/middleware packages/http/tests/_responses packages/http/tests/_headers"
    " packages/http/tests/_json packages/http/tests/_wire",
    "orm:pytest packages/orm/tests/test_functions_dates.py packages/orm/tests/test_lookups_dates.py"
    " packages/orm/tests/test_date_arithmetic.py packages/orm/tests/test_query_calendar.py",
    "jobs:pytest packages/jobs/tests/test_worker.py",
)
"""The same, and the tests of whatever reads a clock."""

FROM_GIT = ("quick", *QUICK, "build router dist")
"""The same, and the commands that look at a checkout."""

README = ("test",)
"""The test command of the README; its demo serves until it is stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One row.

    Attributes:
        name: what is typed.
        changes: what differs from the machine as it is, for `--list` and for readers.
        runs: what is run, as typed after `hatch run`.
        clock: when each suite begins; the servers are then ones of the tests, in the same time.
        variables: of the environment.
        language: a locale of libc, which is made where it is not installed.
        place: where the code lies. Any place but the checkout is a fresh one, with a fresh HOME.
        python: the version of the interpreter that `tools/run.py` is started with.
        confine: options of `confine.py`.
        plain_user: True for a user without rights, in folders with a blank and an umlaut.
        foreign_environment: True if a virtual environment of something else is active.
    """

    name: str
    changes: str
    runs: tuple[str, ...] = QUICK
    clock: Moment | None = None
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    language: str = ""
    place: Literal["checkout", "clone", "shallow clone", "archive"] = "checkout"
    python: str = ""
    confine: tuple[str, ...] = ()
    plain_user: bool = False
    foreign_environment: bool = False

    @property
    def servers(self) -> bool:
        """True if the suites may use servers that run on this machine."""
        away = {"--no-network", "--no-ipv6", "--taken"}
        return not self.clock and not away.intersection(self.confine)


def in_2_days(now: datetime) -> datetime:
    """Soon enough for the certificates of an index, which `test` asks."""
    return now + timedelta(days=2)


def in_401_days(now: datetime) -> datetime:
    return now + timedelta(days=401)


def on_31_january(now: datetime) -> datetime:
    first = now.replace(month=1, day=31)
    return first if first >= now else first.replace(year=now.year + 1)


def on_29_february(now: datetime) -> datetime:
    years = (year for year in range(now.year, now.year + 9) if year % 4 == 0 and year % 100)
    moments = (now.replace(year=year, month=2, day=29) for year in years)
    return next(moment for moment in moments if moment >= now)


def before_midnight(now: datetime) -> datetime:
    evening = now.replace(hour=23, minute=55, second=0)
    return evening if evening >= now else evening + timedelta(days=1)


def after_2038(now: datetime) -> datetime:
    return max(now, datetime(2038, 1, 20, tzinfo=UTC))


CONDITIONS = (
    Condition(name="in-401-days", changes="the clock, by 401 days", runs=DATED, clock=in_401_days),
    Condition(
        name="31-january", changes="the clock: the next 31 January", runs=DATED, clock=on_31_january
    ),
    Condition(
        name="29-february",
        changes="the clock: the next 29 February (2028)",
        runs=DATED,
        clock=on_29_february,
    ),
    Condition(
        name="midnight-kolkata",
        changes="the clock: each suite begins at 23:55 UTC, which is tomorrow in Asia/Kolkata",
        runs=DATED,
        clock=before_midnight,
        variables={"TZ": "Asia/Kolkata"},
    ),
    Condition(
        name="midnight-los-angeles",
        changes="the clock: each suite begins at 23:55 UTC, an afternoon in America/Los_Angeles",
        runs=DATED,
        clock=before_midnight,
        variables={"TZ": "America/Los_Angeles"},
    ),
    Condition(
        name="after-2038",
        changes="the clock: 20 January 2038, where seconds need more than 31 bits",
        runs=DATED,
        clock=after_2038,
    ),
    Condition(
        name="language-c",
        changes="LANG and LC_ALL: C",
        variables={"LANG": "C", "LC_ALL": "C"},
    ),
    Condition(
        name="language-de",
        changes="LANG and LC_ALL: de_DE.UTF-8",
        variables={"LANG": "de_DE.UTF-8", "LC_ALL": "de_DE.UTF-8"},
        language="de_DE",
    ),
    Condition(
        name="plain-user",
        changes="a user without rights; HOME and clone in folders with a blank and an umlaut",
        place="clone",
        plain_user=True,
    ),
    Condition(
        name="shallow-clone", changes="a clone of depth 1", runs=FROM_GIT, place="shallow clone"
    ),
    Condition(
        name="archive", changes="an archive of the files, no .git", runs=FROM_GIT, place="archive"
    ),
    Condition(
        name="no-servers",
        changes="neither PostgreSQL nor Redis runs, nor anything else",
        confine=("--no-network",),
    ),
    Condition(
        name="ports-taken",
        changes="something else answers on the ports 8000, 5432 and 6379",
        confine=("--taken", "8000,5432,6379"),
    ),
    Condition(name="no-ipv6", changes="no address of IPv6", confine=("--no-ipv6",)),
    Condition(name="one-processor", changes="one processor", confine=("--processors", "1")),
    Condition(
        name="python-3.12",
        changes="Python 3.12 starts tools/run.py",
        place="clone",
        python="3.12",
    ),
    Condition(
        name="python-3.13",
        changes="Python 3.13 starts tools/run.py",
        place="clone",
        python="3.13",
    ),
    Condition(
        name="foreign-environment",
        changes="a virtual environment of something else is active",
        place="clone",
        foreign_environment=True,
    ),
    Condition(
        name="readme-in-2-days",
        changes="the test command of the README, whole, in 2 days, for a user without rights",
        runs=README,
        clock=in_2_days,
        place="clone",
        plain_user=True,
    ),
)

NOT_SHIFTED = {
    "certificates": "an index or a site is asked before the clock is shifted: theirs would be out"
    " of date",
    "servers of the machine": "a PostgreSQL or Redis that runs has a clock of its own; with a"
    " shifted clock the tests start servers, which are shifted too",
    "the monotonic clock": "it has no date; timeouts and durations are measured by it",
    "the kernel": "it stamps files with its own time; the programs read and set them shifted",
    "browsers, and programs without libc": "they ask the kernel themselves; no quick suite has one",
}
"""What a condition of the clock leaves as it is, and why."""
