"""The part of a Redis that belongs to one application: every key begins with its names.

Sessions, limits and caches make their keys here and nowhere else, so that two applications, two
environments and tests never meet on one server, and the processes of one deployment do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import proxy

from treefold_http._redis.client import Word
from treefold_http._redis.users import RedisUse
from treefold_http._runtime.current_application import find_current_names
from treefold_http._runtime.name_space import NameSpace

if TYPE_CHECKING:
    from treefold_http._runtime.runtime import Runtime


class OwnRedis:
    """Commands on the keys of an application.

    Args:
        url: of the server.
        effect: the effect of a failure, for the warning.
        app: the application; None for a script, which has the names of its project.
        shared: use names that all applications of the environment have.

    Raises:
        TreefoldError: if the `redis` extra is not installed.
        ValueError: if the URL is not one of Redis.
    """

    def __init__(self, url: str, *, effect: str, app: Runtime | None, shared: bool = False) -> None:
        self._use = RedisUse(url, effect=effect, app=app)
        self._app = None if app is None else proxy(app)  # which keeps what it has opened
        self._shared = shared

    def build_key(self, kind: str, name: str) -> str:
        """Return the key of a name, such as that of a session."""
        return build_redis_key(self._find_names(), kind, name, shared=self._shared)

    async def execute(self, *command: Word) -> Any:
        """As `SharedRedis.execute`.

        Raises:
            RedisUnavailable: after 100 ms at most.
            SettingsError: another deployment uses the names.
        """
        await self._claim_names_if_due()
        return await self._use.client.execute(*command)

    async def run_transaction(self, commands: Sequence[Sequence[Word]]) -> list[Any]:
        """As `SharedRedis.run_transaction`."""
        await self._claim_names_if_due()
        return await self._use.client.run_transaction(commands)

    async def run_script(self, source: str, keys: Sequence[str], words: Sequence[Word] = ()) -> Any:
        """As `SharedRedis.run_script`."""
        await self._claim_names_if_due()
        return await self._use.client.run_script(source, keys, words)

    def run_transaction_blocking(self, commands: Sequence[Sequence[Word]]) -> list[Any]:
        """As `SharedRedis.run_transaction_blocking`."""
        self._claim_names_if_due_blocking()
        return self._use.client.run_transaction_blocking(commands)

    def run_script_blocking(
        self, source: str, keys: Sequence[str], words: Sequence[Word] = ()
    ) -> Any:
        """As `SharedRedis.run_script_blocking`."""
        self._claim_names_if_due_blocking()
        return self._use.client.run_script_blocking(source, keys, words)

    def _find_names(self) -> NameSpace:
        return find_current_names() if self._app is None else self._app.names

    async def _claim_names_if_due(self) -> None:
        client = self._use.client
        # shared names belong to all applications of the environment: no deployment can claim them
        if not self._shared and client.is_claim_due(names := self._find_names()):
            await client.claim_names(names)

    def _claim_names_if_due_blocking(self) -> None:
        client = self._use.client
        if not self._shared and client.is_claim_due(names := self._find_names()):
            client.claim_names_blocking(names)


def build_redis_key(names: NameSpace, kind: str, name: str, *, shared: bool) -> str:
    """Return a key of an application, or one that all applications of its environment use."""
    return f"{names.shared if shared else names.own}{kind}:{name}"
