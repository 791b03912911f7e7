"""Sessions as rows: values under opaque keys, each with an end, on either database.

The table is made by its first use. What a session holds, and how its key is made and hashed, is
decided by the caller.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from treefold_orm import fields
from treefold_orm._drivers.base import Database
from treefold_orm._models.model import Model
from treefold_orm._queries.managers import QuerySet
from treefold_orm._runtime.connections import database_for
from treefold_orm._schema.create import acreate_all
from treefold_orm._terms.constraints import Index

SWEEP_EVERY = timedelta(minutes=10)
"""How often writes remove the rows that have expired."""

LONGEST_KEY = 255
"""Characters of a key; the hash of a session id has 64."""
LONGEST_LIFE = 10 * 366 * 24 * 3600
"""Seconds."""


class TreefoldSession(Model):
    """One session; its space keeps it out of the models of applications and their migrations."""

    _space = "treefold"

    key = fields.CharField(max_length=LONGEST_KEY, primary_key=True)
    value = fields.BinaryField()
    expires_at = fields.DateTimeField()

    class Meta:
        table = "treefold_sessions"
        indexes = (Index(["expires_at"]),)


class SessionRows:
    """Keeps sessions in the table `treefold_sessions` of one database.

    A call inside a transaction of that database is part of it.

    Args:
        alias: the database.
    """

    def __init__(self, alias: str = "default") -> None:
        self._alias = alias
        self._made_in: Database | None = None
        self._swept = datetime.min.replace(tzinfo=UTC)

    async def get(self, key: str) -> bytes | None:
        """Return the value of a key, or None if there is none or it has expired."""
        rows = (await self._ensure_table_and_query()).filter(
            key=_check_key(key), expires_at__gt=_utc_now()
        )
        return await rows.values_list("value", flat=True).afirst()

    async def set(self, key: str, value: bytes, *, seconds: float) -> None:
        """Write the value of a key, which expires after `seconds`."""
        row = TreefoldSession(key=_check_key(key), value=value, expires_at=_compute_expiry(seconds))
        rows = await self._ensure_table_and_query()
        await rows.abulk_create(
            [row], update_conflicts=["value", "expires_at"], unique_fields=["key"]
        )
        if _utc_now() - self._swept > SWEEP_EVERY:
            await self.delete_expired()

    async def replace(self, key: str, value: bytes, *, seconds: float) -> bool:
        """Write the value of a key that has one; return False if there is none or it has expired.

        One statement: a save cannot bring a session back that another request has deleted.
        """
        rows = (await self._ensure_table_and_query()).filter(
            key=_check_key(key), expires_at__gt=_utc_now()
        )
        return bool(await rows.aupdate(value=value, expires_at=_compute_expiry(seconds)))

    async def delete(self, key: str) -> bool:
        """Remove the value of a key; return True if there was one that had not expired."""
        rows = (await self._ensure_table_and_query()).filter(key=_check_key(key))
        # in two steps: only a row that had not expired counts as a session that was there
        alive = await rows.filter(expires_at__gt=_utc_now()).adelete()
        await rows.adelete()
        return bool(alive)

    async def touch(self, key: str, *, seconds: float) -> bool:
        """Set the expiry of a value to `seconds` from now; return False if there is none."""
        rows = (await self._ensure_table_and_query()).filter(
            key=_check_key(key), expires_at__gt=_utc_now()
        )
        return bool(await rows.aupdate(expires_at=_compute_expiry(seconds)))

    async def delete_expired(self) -> int:
        """Remove expired rows; return how many there were."""
        self._swept = _utc_now()
        rows = await self._ensure_table_and_query()
        return await rows.filter(expires_at__lte=_utc_now()).adelete()

    async def _ensure_table_and_query(self) -> QuerySet[TreefoldSession]:
        database = database_for(self._alias)
        # configure() may have put another database behind the alias, without the table
        if self._made_in is not database:
            await acreate_all(TreefoldSession, using=self._alias)
            self._made_in = database
        return TreefoldSession.objects.using(self._alias)


def _check_key(key: str) -> str:
    if not 0 < len(key) <= LONGEST_KEY or "\0" in key:
        raise ValueError(
            f"A session key must have 1 to {LONGEST_KEY} characters without NUL, got {len(key)};"
            " hash a longer one"
        )
    return key


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _compute_expiry(seconds: float) -> datetime:
    if not (math.isfinite(seconds) and 0 < seconds <= LONGEST_LIFE):
        raise ValueError(
            f"seconds must be a number from 0 to {LONGEST_LIFE}, got {seconds!r}; use delete() to"
            " end a session now"
        )
    return _utc_now() + timedelta(seconds=seconds)
