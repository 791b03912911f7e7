"""The ORM inside an application: its databases from the settings, its pools closed at the end.

Found by the entry point `databases` of the group `treefold.extensions`. An application hands itself
to `setup` and calls the rest at its times; of it, only `root` and `settings.databases` are read.
Nothing of HTTP is imported: the reply to a client goes back as numbers and text.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import Token
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from treefold_orm._base import errors
from treefold_orm._base.records import copy_with_changes
from treefold_orm._base.statement import CoroutineOf
from treefold_orm._drivers.base import Database
from treefold_orm._fields.meta import registry
from treefold_orm._runtime.addresses import check_address, mask_address
from treefold_orm._runtime.connections import _databases, aclose_all, configure, is_diverted
from treefold_orm._runtime.context import EMPTY, Context, current
from treefold_orm._runtime.recorder import Recorder
from treefold_orm._runtime.sandbox import Sandbox
from treefold_orm._runtime.spans import SpanFactory, add_span_factory

if TYPE_CHECKING:
    from treefold_orm._framework.readiness import Check
    from treefold_orm._framework.session_rows import SessionRows
    from treefold_orm._lists.cursors import CursorSeal
    from treefold_orm._lists.page_results import PageResult

log = logging.getLogger("treefold.orm")

REPEATS = 3
"""Once may be chance, and so may be twice: from here on a loop is likely."""
MAX_SHOWN_SQL = 200
"""Characters of a statement in a warning: enough to know it by its columns and its table."""

Refusal: TypeAlias = tuple[int, str, Sequence[Mapping[str, Any]] | None]


class _Settings(Protocol):
    @property
    def databases(self) -> Mapping[str, str]: ...


class Application(Protocol):
    """The attributes of an application that are read here."""

    root: Path

    @property
    def settings(self) -> _Settings:
        """Its settings, with `databases`: alias to address."""
        ...


@dataclass(eq=False, slots=True)
class _Configured:
    """A database that settings asked for, and the running applications that share it.

    `address` is the working directory and the address, which may be relative to it.
    """

    address: tuple[str, str]
    database: Database
    users: set[Databases] = field(default_factory=lambda: set[Databases]())


_configured: dict[str, _Configured] = {}
_running: set[Databases] = set()


class Databases:
    """One for each application.

    Attributes:
        refusals: exceptions that a client is told about, and how: status, detail, errors.
    """

    refusals: Mapping[type[Exception], Callable[[Any], Refusal]]

    def __init__(self) -> None:
        self.refusals = {
            errors.InvalidParameter: _build_parameter_response,
            errors.FieldValueError: _build_field_value_response,
            errors.ValidationError: _build_validation_response,
            errors.UniqueViolation: _build_duplicate_response,
            errors.ForeignKeyViolation: _build_reference_response,
            **dict.fromkeys(_BUSY, _build_unavailable_response),
        }
        self._root = Path()
        self._seal: CursorSeal | None = None
        self._addresses: Mapping[str, str] = {}

    def setup(self, app: Application) -> None:
        """Configure the databases of the settings, before any model is imported.

        Raises:
            ConfigurationError: for an address that cannot be used; no password is quoted.
        """
        self._root = app.root
        self._settings = app.settings
        self._addresses = dict(app.settings.databases)
        if is_diverted():
            from treefold_orm._framework.own_databases import register_test_addresses

            register_test_addresses(getattr(app.settings, "test_databases", {}))
        self._configure_databases()

    async def startup(self) -> None:
        """Claim the databases for this application; connections are opened by their first use.

        In a test run, make the tables for an application that no fixture has prepared.
        """
        self._configure_databases()
        if is_diverted():
            from treefold_orm._framework.own_databases import create_test_tables

            # it makes tables by blocking calls, which a thread with a loop refuses
            await asyncio.to_thread(create_test_tables, self._root)
        _running.add(self)
        for alias in self._addresses:
            if (own := _configured.get(alias)) is not None:
                own.users.add(self)

    async def shutdown(self) -> None:
        """Close every connection that no other running application uses."""
        _running.discard(self)
        for own in _configured.values():
            own.users.discard(self)
        # the last one closes those of an explicit configure() too, which belong to no application
        if not _running:
            await aclose_all()
            return
        for alias in self._addresses:
            own = _configured.get(alias)
            if own is not None and not own.users:
                await own.database.aclose()

    async def ready(self) -> list[Check]:
        """Ask every database of this application whether it can serve.

        A database that is in use is asked over its pool, any other by a short connection.
        """
        from treefold_orm._framework.readiness import check_running, probe_address

        checks: list[CoroutineOf[Check]] = []
        for alias in dict.fromkeys((*self._addresses, *_databases)):
            known, own = _databases.get(alias), _configured.get(alias)
            is_explicit = known is not None and (own is None or known is not own.database)
            if known is not None and (is_explicit or (known.in_use and alias in self._addresses)):
                checks.append(check_running(alias, known))
            elif alias in self._addresses:
                checks.append(probe_address(alias, self._addresses[alias]))
        return await asyncio.gather(*checks)

    def prepare_tests(self) -> None:
        """Create the missing tables of all models, each on the database where it lives."""
        from treefold_orm._framework.own_databases import create_tables

        registry.enter_application_folder(self._root)
        create_tables(_databases)

    def session_store(self) -> SessionRows | None:
        """Return a store of sessions in the database `default`, if there is one."""
        if "default" not in _databases:
            return None
        from treefold_orm._framework.session_rows import SessionRows

        return SessionRows()

    def parameters(self, kind: type[Any]) -> Callable[..., Any] | None:
        """Return the function that makes a `FilterSet` of names of a query; None for other types.

        Raises:
            ConfigurationError: for several workers without a secret: each would refuse the cursors
                of the others.
        """
        # without the import: no class of it exists before its module does
        lists = sys.modules.get("treefold_orm._lists.filter_set")
        if lists is None or not issubclass(kind, lists.FilterSet):
            return None
        from treefold_orm._lists.parameters import find_parameter_function

        self._seal = self._seal or self._make_seal()
        return find_parameter_function(kind, self._seal)

    def result(self, annotation: Any) -> PageResult | None:
        """Return how a `Page` is answered; None for other types."""
        paging = sys.modules.get("treefold_orm._operations.paging")
        if paging is None or typing.get_origin(annotation) is not paging.Page:
            return None
        from treefold_orm._lists.page_results import PageResult

        return PageResult(annotation)

    def _make_seal(self) -> CursorSeal:
        from treefold_orm._lists.cursors import CursorSeal

        secret: str | None = getattr(self._settings, "secret_key", None)
        former: Sequence[str] = getattr(self._settings, "secret_key_fallbacks", ())
        given = [each.encode() for each in (secret, *former) if each is not None]
        if secret is None:
            count = getattr(getattr(self._settings, "serve", None), "workers", 1)
            if count > 1:
                raise errors.ConfigurationError(
                    f"Lists beside {count} workers need a secret, which signs their cursors: set"
                    " TREEFOLD_SECRET_KEY"
                )
            given = [os.urandom(32)]
        return CursorSeal(given)

    def observe(self, span_factory: SpanFactory) -> Callable[[], None]:
        """Open a span around every statement of every database; return a function that stops it."""
        return add_span_factory(span_factory)

    def reload(self, modules: Collection[str]) -> Callable[[Collection[str]], None]:
        """Forget the models of modules that change; the answer takes back what did not."""
        return registry.unregister_module_models(self._root, modules)

    def find_definitions(self, module: str) -> Sequence[str]:
        """Return the models that a module defines: a process has each of them once."""
        return [f"the model {name}" for name in registry.list_module_models(self._root, module)]

    def related(self) -> Collection[Collection[str]]:
        """Return the groups of modules whose models are connected by relations."""
        return registry.group_related_modules(self._root)

    def watch(self) -> Callable[[], str]:
        """Record the queries of what runs from here on in this context; development only.

        Returns:
            Ends it: warns of repeated queries, and says how many there were and how long they took.
        """
        recorder = Recorder(repeats=REPEATS)
        token = current.set(copy_with_changes(current.get() or EMPTY, recorder=recorder))
        return lambda: self._stop_and_report_queries(recorder, token)

    def _stop_and_report_queries(self, recorder: Recorder, token: Token[Context | None]) -> str:
        current.reset(token)
        for (sql, source), count in recorder.repeated().items():
            log.warning(
                "Likely N+1: %d times the same query in one request, from %s; load it at once with"
                " select_related(), prefetch_related() or a bulk method: %s",
                count,
                source.removeprefix(f"{self._root.resolve()}/"),
                sql if len(sql) <= MAX_SHOWN_SQL else f"{sql[:MAX_SHOWN_SQL]}...",
            )
        if not recorder.events:
            return ""
        counted = "1 query" if len(recorder) == 1 else f"{len(recorder)} queries"
        return f"{counted} in {recorder.duration * 1000:.2f}ms"

    def _configure_databases(self) -> None:
        registry.enter_application_folder(self._root)
        for alias, address in self._addresses.items():
            check_address(alias, address)
            self._configure_one(alias, address)

    # the database of an alias           address of the settings    outcome
    # none yet                           any                        configured
    # that of settings                   the same                   kept
    # that of settings, used by no       another                    configured again
    #   running application
    # that of settings, in use           another                    ConfigurationError
    # that of a call of configure()      any                        kept
    # a sandbox over that of settings    another                    ConfigurationError
    # any other sandbox                  any                        kept
    def _configure_one(self, alias: str, address: str) -> None:
        # a relative SQLite path leads to another file from another working directory
        place = (str(Path.cwd()), address)
        known, own = _databases.get(alias), _configured.get(alias)
        if isinstance(known, Sandbox):
            if own is not None and own.database is known.real and own.address != place:
                raise errors.ConfigurationError(
                    f"Database {alias!r} is in a sandbox of another application: ask for `db` in"
                    " tests of one application at a time"
                )
            return
        if known is not None and (own is None or known is not own.database):
            return  # an explicit configure() wins
        if known is not None and own is not None:
            if own.address == place:
                return
            if own.users:
                raise errors.ConfigurationError(
                    f"Database {alias!r} is in use by another application of this process, at"
                    " another address: give one of the two another alias"
                )
        try:
            configure(database=address, alias=alias)
        except errors.ConfigurationError as error:
            failure = errors.ConfigurationError(
                f"Database {alias!r} ({mask_address(address)}): {error}"
            )
        else:
            _configured[alias] = _Configured(place, _databases[alias])
            if not is_diverted():
                _warn_if_outside_project(alias, address, self._root)
            return
        raise failure


def _warn_if_outside_project(alias: str, address: str, root: Path) -> None:
    """Warn of a relative SQLite path that leads to a new file outside of the project."""
    scheme, _, rest = address.partition(":///")
    path = rest.partition("?")[0]
    if scheme != "sqlite" or not path or path.startswith((":", "/")):
        return
    file, project = Path.cwd() / path, root.resolve()
    if file.is_relative_to(project) or file.exists():
        return
    log.warning(
        "database %r is a new file %s, outside of the project %s: start there, or write the"
        " absolute path",
        alias,
        file,
        project,
    )


_BUSY = (
    errors.ConnectionFailed,
    errors.DatabaseLocked,
    errors.OperationalError,
    errors.PoolTimeout,
    errors.StatementTimeout,
    errors.TransactionConflict,
)


def _build_unavailable_response(error: Exception) -> Refusal:
    log.error("%s: %s", type(error).__name__, error)
    # the text names the server, which is for the log and not for a client
    return 503, "The database cannot answer now", None


def _build_parameter_response(error: errors.InvalidParameter) -> Refusal:
    entry = {"loc": ["query", error.field], "msg": str(error), "type": "value_error"}
    return 422, "A parameter is not valid", [entry]


def _build_field_value_response(error: errors.FieldValueError) -> Refusal:
    entry: dict[str, Any] = {"loc": [error.field], "msg": error.reason, "type": "value_error"}
    if error.limits:
        entry["ctx"] = dict(error.limits)
    return 422, f"{error.field}: {error.reason}", [entry]


def _build_duplicate_response(error: errors.UniqueViolation) -> Refusal:
    if not error.fields:
        return 409, "There is such an entry already", None
    entries = [{"loc": [name], "msg": "exists already", "type": "unique"} for name in error.fields]
    return 409, f"{', '.join(error.fields)}: exists already", entries


def _build_reference_response(error: errors.ForeignKeyViolation) -> Refusal:
    if isinstance(error, errors.ProtectedError):
        return 409, "Other entries refer to this one", None
    # SQLite tells neither the column nor which side of it is missing
    detail = "An entry that this one refers to is missing, or others refer to this one"
    found = [{"loc": [name], "msg": detail, "type": "reference"} for name in error.fields]
    return 409, detail, found or None


def _build_validation_response(error: errors.ValidationError) -> Refusal:
    entries = [
        {"loc": [name], "msg": text, "type": "value_error"}
        for name, texts in error.message_dict.items()
        for text in texts
    ]
    return 422, str(errors.ValidationError(error.message_dict)), entries
