"""Transactions: one object for `with` and `async with`, nested ones being savepoints.

A transaction holds one connection. Tasks and threads started inside share it, one statement at a
time; a nested transaction keeps it to itself until it ends. After the end, use from a stray task
raises. Commit and rollback are finished even while the task is being cancelled. A
transaction in progress is a `Transaction` of `_runtime/open_transaction.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import itertools
from collections.abc import Callable
from contextvars import Token
from typing import Any, Literal, TypeVar, cast

from treefold_orm._base.errors import FieldError, TransactionConflict
from treefold_orm._base.records import copy_with_changes
from treefold_orm._drivers.base import finish_despite_cancellation
from treefold_orm._runtime.connections import database_for
from treefold_orm._runtime.context import EMPTY, Context, current
from treefold_orm._runtime.open_transaction import State, Transaction, execute_statements
from treefold_orm._runtime.run import require_blocking_allowed

F = TypeVar("F", bound=Callable[..., Any])

Isolation = Literal["read committed", "repeatable read", "serializable"]


class transaction:  # noqa: N801, RUF100 - used like a function: `with transaction():`
    """Open a transaction, as `with`, `async with` or decorator; inside another one, a savepoint.

    `using` names the database; `isolation` is "read committed", "repeatable read" or
    "serializable" (PostgreSQL; SQLite is always serializable); `read_only` refuses writes;
    `retries` (decorator only) runs the function again after a `TransactionConflict`;
    `rollback` undoes everything at the end.
    """

    def __init__(
        self,
        using: str = "default",
        *,
        isolation: Isolation | None = None,
        read_only: bool = False,
        retries: int = 0,
        rollback: bool = False,
    ) -> None:
        if isolation not in {None, "read committed", "repeatable read", "serializable"}:
            raise FieldError(
                f"isolation={isolation!r} is not one of 'read committed', 'repeatable read', "
                "'serializable'"
            )
        if isinstance(retries, bool) or retries < 0:
            raise FieldError(f"retries={retries!r} must be a number of at least 0")
        self._using = using
        self._isolation = isolation
        self._read_only = read_only
        self._retries = retries
        self._rollback = rollback
        # One for each `with` that runs now: an object may be shared by tasks, or nested in itself.
        # The token restores the context, the turn is the parent's, to be returned at the end.
        self._open: list[tuple[Transaction, Token[Context | None], str | None]] = []

    def _create_transaction(self) -> Transaction:
        if self._retries:
            raise FieldError(
                "retries works on a decorated function: a with block cannot be run again"
            )
        context = current.get() or EMPTY
        parent = context.transactions.get(self._using)
        if parent is not None:
            parent.check_open()
        if parent is not None and self._isolation is not None:
            raise FieldError(
                "A nested transaction cannot choose its isolation level: set it on the "
                "outermost one"
            )
        database = database_for(self._using) if parent is None else parent.database
        enclosing: Transaction | None = database.outer
        parent = parent or enclosing
        write = not (self._read_only or context.read_only) and (parent is None or parent.write)
        return Transaction(
            self._using,
            parent=parent,
            write=write,
            isolation=self._isolation,
            rollback=self._rollback,
            database=database,
        )

    def _push_transaction(self, made: Transaction, turn: str | None) -> Transaction:
        context = current.get() or EMPTY
        made.state = State.OPEN
        token = current.set(
            copy_with_changes(context, transactions={**context.transactions, self._using: made})
        )
        self._open.append((made, token, turn))
        return made

    def _pop_transaction(self) -> tuple[Transaction, str | None]:
        """The transaction to end: the one of this task or thread, where several use this object."""
        context = current.get()
        mine = None if context is None else context.transactions.get(self._using)
        places = [place for place, entry in enumerate(self._open) if entry[0] is mine]
        # a fixture may end in another context, where none of them is found: then the last one
        made, token, turn = self._open.pop(places[-1] if places else -1)
        with contextlib.suppress(ValueError):  # the end of a fixture may run in another context
            current.reset(token)
        return made, turn

    # -- sync -------------------------------------------------------------------------------------

    def __enter__(self) -> Transaction:
        require_blocking_allowed("`async with transaction():`")
        made, turn = self._create_transaction(), None
        if made.parent is not None:
            turn = made.parent.turn.take_item()
            made.session = made.parent.session
        else:
            made.session = made.database.checkout(write=made.write)
        try:
            made.session.run(execute_statements([made.begin_sql()]))
        except BaseException:
            self._release_session_or_turn(made, turn)
            raise
        return self._push_transaction(made, turn)

    def _release_session_or_turn(self, made: Transaction, turn: str | None) -> None:
        if made.parent is not None and turn is not None:
            made.parent.turn.return_item(turn)
        else:
            made.database.checkin(made.session)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        made, turn = self._pop_transaction()
        commit = error is None and not made.rollback_only
        hooks: list[Callable[[], Any]] = []
        own: str | None = None
        try:
            # tasks and threads started inside may be in the middle of a statement
            own = made.turn.take_item()
            hooks = self._end_transaction(made, commit=commit, block_failed=error is not None)
        finally:
            made.close_uncommitted()
            if own is not None:
                made.turn.return_item(own)
            self._release_session_or_turn(made, turn)
        # with the connection back in its pool: a hook may need it, and a pool may have one only
        for hook in hooks:
            result = hook()
            if inspect.iscoroutine(result):
                # else Python warns of a coroutine that was never awaited
                result.close()
                raise TypeError(f"{hook!r} is async: register it in an async transaction")

    def _end_transaction(
        self, made: Transaction, *, commit: bool, block_failed: bool
    ) -> list[Callable[[], Any]]:
        try:
            made.session.run(made.commit_or_roll_back(commit=commit))
        except BaseException:
            if not block_failed:
                self._roll_back_quietly(made)
                raise
            return []  # the error that ended the block matters more than the broken connection
        return made.close_and_collect_hooks(commit=commit)

    def _roll_back_quietly(self, made: Transaction) -> None:
        with contextlib.suppress(Exception):  # report the failed commit
            made.session.run(made.commit_or_roll_back(commit=False))

    # -- async ------------------------------------------------------------------------------------

    async def __aenter__(self) -> Transaction:
        made, turn = self._create_transaction(), None
        if made.parent is not None:
            turn = await made.parent.turn.atake_item()
            made.session = made.parent.session
        else:
            made.session = await made.database.acheckout(write=made.write)
        try:
            # cut off halfway, BEGIN would leave open whether the connection is in a transaction
            await finish_despite_cancellation(
                made.session.arun(execute_statements([made.begin_sql()]))
            )
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                await finish_despite_cancellation(self._aroll_back_quietly(made))
            await finish_despite_cancellation(self._arelease_session_or_turn(made, turn))
            raise
        return self._push_transaction(made, turn)

    async def _arelease_session_or_turn(self, made: Transaction, turn: str | None) -> None:
        if made.parent is not None and turn is not None:
            made.parent.turn.return_item(turn)
        else:
            await made.database.acheckin(made.session)

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        made, turn = self._pop_transaction()
        commit = error is None and not made.rollback_only
        hooks: list[Callable[[], Any]] = []
        work = self._aend_transaction(
            made, turn, hooks, commit=commit, block_failed=error is not None
        )
        try:
            await finish_despite_cancellation(work)
        finally:  # a cancelled task has committed all the same
            for hook in hooks:
                result = hook()
                if inspect.isawaitable(result):
                    await result

    async def _aend_transaction(
        self,
        made: Transaction,
        turn: str | None,
        hooks: list[Callable[[], Any]],
        *,
        commit: bool,
        block_failed: bool,
    ) -> None:
        own: str | None = None
        try:
            own = await made.turn.atake_item()
            try:
                await made.session.arun(made.commit_or_roll_back(commit=commit))
            except Exception:
                if not block_failed:
                    await self._aroll_back_quietly(made)
                    raise
            else:
                hooks += made.close_and_collect_hooks(commit=commit)
        finally:
            made.close_uncommitted()
            if own is not None:
                made.turn.return_item(own)
            await self._arelease_session_or_turn(made, turn)

    async def _aroll_back_quietly(self, made: Transaction) -> None:
        with contextlib.suppress(Exception):  # report the error that led here
            await made.session.arun(made.commit_or_roll_back(commit=False))

    # -- decorator and hooks ----------------------------------------------------------------------

    def __call__(self, function: F) -> F:
        """Run each call of `function` in a transaction of its own; async functions in an async
        one.
        """
        options: dict[str, Any] = {
            "isolation": self._isolation,
            "read_only": self._read_only,
            "rollback": self._rollback,
        }
        attempts = self._retries + 1

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def acall_in_transaction(*args: Any, **kwargs: Any) -> Any:
                for attempt in itertools.count(1):
                    try:
                        async with transaction(self._using, **options):
                            return await function(*args, **kwargs)
                    except TransactionConflict:
                        # in an outer transaction a new attempt would keep its snapshot and its
                        # locks, and collide again
                        if attempt == attempts or self._is_in_transaction():
                            raise

            return cast("F", acall_in_transaction)

        @functools.wraps(function)
        def call_in_transaction(*args: Any, **kwargs: Any) -> Any:
            for attempt in itertools.count(1):
                try:
                    with transaction(self._using, **options):
                        return function(*args, **kwargs)
                except TransactionConflict:
                    if attempt == attempts or self._is_in_transaction():
                        raise

        return cast("F", call_in_transaction)

    def _is_in_transaction(self) -> bool:
        context = current.get()
        return context is not None and self._using in context.transactions

    @staticmethod
    def on_commit(hook: Callable[[], Any], *, using: str = "default") -> None:
        """Call `hook` after the outermost transaction has committed; at once where there is none.

        In async transactions it may be async. A rolled back savepoint drops the hooks registered
        in it.
        """
        context = current.get()
        active = None if context is None else context.transactions.get(using)
        if active is None:
            result = hook()
            if inspect.iscoroutine(result):
                result.close()
                raise TypeError(f"{hook!r} is async and there is no transaction: await it instead")
            return
        active.check_open()
        active.hooks.append(hook)

    @staticmethod
    def detach() -> _Detached:
        """Run a block outside of any transaction: `with transaction.detach(): create_task(...)`."""
        return _Detached()

    @staticmethod
    def active(using: str = "default") -> bool:
        """Return True inside a transaction."""
        context = current.get()
        found = None if context is None else context.transactions.get(using)
        return found is not None and found.state is State.OPEN


class _Detached:
    def __enter__(self) -> None:
        self._token = current.set(copy_with_changes(current.get() or EMPTY, transactions={}))

    def __exit__(self, *_: object) -> None:
        current.reset(self._token)
