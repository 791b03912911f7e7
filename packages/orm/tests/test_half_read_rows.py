"""A stream whose rows are not read to the end prints nothing, and keeps no connection."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import orm_postgres
import pytest

PROGRAM = """
import asyncio, contextlib, sys
from treefold_orm import Model, aclose_all, acreate_all, configure, fields

class HalfRead(Model):
    number = fields.IntegerField()

configure(database=sys.argv[1])
held = []
held_open = sys.argv[2] in ("held", "closed")

async def read():
    rows = HalfRead.objects.order_by("number").aiterator(chunk_size=2)
    if held_open:
        held.append(rows)
    async for row in rows:
        if sys.argv[2] == "cancelled":
            print(10)
            await asyncio.sleep(60)
        if row.number == 3:
            if sys.argv[2] == "raise":
                raise LookupError
            return

async def main():
    await acreate_all()
    await HalfRead.objects.abulk_create([HalfRead(number=n) for n in range(10)])
    if sys.argv[2] == "cancelled":  # by the loop, as it ends
        task = asyncio.create_task(read())
        await asyncio.sleep(0.2)
        return
    for _ in range(1 if held_open else 30):  # 30: more than a pool has connections
        with contextlib.suppress(LookupError):
            await read()
    print(await HalfRead.objects.acount())
    if sys.argv[2] == "closed":
        await aclose_all()
    while len(asyncio.all_tasks()) > 1:  # streams that the loop closes
        await asyncio.sleep(0)

asyncio.run(main())
"""


@pytest.mark.parametrize("way", ["break", "raise", "held", "closed", "cancelled"])
def test_a_stream_left_behind_is_silent(
    engine: str, way: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with contextlib.ExitStack() as stack:
        if engine == "sqlite":
            address = f"sqlite:///{tmp_path / 'x.db'}"
        else:
            dsn: str = request.getfixturevalue("postgres_dsn")
            address = stack.enter_context(orm_postgres.database(dsn))
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, address, way],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.stdout, done.stderr, done.returncode) == ("10\n", "", 0)
