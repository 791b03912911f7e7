"""Spans around statements: one each, under the span of the code that asked."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from orm_models import Author, Country

from treefold_orm import UniqueViolation, transaction
from treefold_orm._framework.extension import Databases
from treefold_orm._runtime.spans import factories

if TYPE_CHECKING:
    from conftest import Half, Place


@dataclass
class Tracer:
    """Spans with the span they were opened in, as a tracer with context variables keeps them."""

    inner: ContextVar[str] = field(default_factory=lambda: ContextVar("span", default=""))
    opened: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    ended: list[str] = field(default_factory=list[str])
    attributes: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, str | int]) -> Generator[None]:
        parent = self.inner.get()
        self.opened.append((name, parent, str(attributes.get("db.system.name", ""))))
        self.attributes.append(attributes)
        token = self.inner.set(name)
        try:
            yield
        except BaseException as error:
            self.ended.append(f"{name} {type(error).__name__}")
            raise
        else:
            self.ended.append(name)
        finally:
            self.inner.reset(token)


@pytest.fixture
def tracer() -> Iterator[Tracer]:
    made = Tracer()
    stop = Databases().observe(made.span)
    yield made
    stop()
    assert factories == []


async def test_each_statement_has_a_span_under_that_of_its_caller(
    db: Any, place: Place, half: Half, tracer: Tracer
) -> None:
    with tracer.span("request", {}):
        await half(Country.objects).create(name="kept")
        assert await half(Country.objects.filter(name="kept")).count() == 1
    system = "postgresql" if place.engine == "postgres" else "sqlite"
    assert tracer.opened[1:] == [("INSERT", "request", system), ("SELECT", "request", system)]
    assert tracer.ended == ["INSERT", "SELECT", "request"]


async def test_a_span_holds_the_statement_without_its_values(db: Any, tracer: Tracer) -> None:
    await Country.objects.acreate(name="hunter2")
    (attributes,) = tracer.attributes
    assert attributes["db.operation.name"] == "INSERT"
    assert "INSERT INTO" in attributes["db.query.text"]
    assert "hunter2" not in str(attributes)


async def test_a_refused_statement_ends_its_span_with_the_error(
    db: Any, half: Half, tracer: Tracer
) -> None:
    await half(Country.objects).create(name="once")
    with pytest.raises(UniqueViolation, match=r"Country\.name exists already"):
        await half(Country.objects).create(name="once")
    assert tracer.ended == ["INSERT", "INSERT UniqueViolation"]


async def test_a_cancelled_statement_ends_its_span(db: Any, tracer: Tracer) -> None:
    task = asyncio.create_task(Country.objects.acreate(name="cancelled"))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert len(tracer.ended) == len(tracer.opened)


async def test_statements_of_transactions_and_of_tasks_side_by_side_keep_apart(
    db: Any, tracer: Tracer
) -> None:
    async def work(number: int) -> None:
        with tracer.span(f"task {number}", {}):
            async with transaction():
                await Author.objects.acreate(name=f"a{number}")
            assert tracer.inner.get() == f"task {number}"

    await asyncio.gather(*(work(n) for n in range(5)))
    inserts = sorted(parent for name, parent, _ in tracer.opened if name == "INSERT")
    assert inserts == [f"task {n}" for n in range(5)]
    assert tracer.inner.get() == ""


async def test_bulk_work_in_one_operation_has_a_span_per_statement(
    db: Any, half: Half, tracer: Tracer
) -> None:
    rows = [Country(name=f"c{n}") for n in range(4)]
    await half(Country.objects).bulk_create(rows, batch_size=2)
    assert [name for name, _, _ in tracer.opened] == ["INSERT", "INSERT"]


async def test_two_tracers_nest_and_stop_by_themselves(db: Any, tracer: Tracer) -> None:
    other = Tracer()
    stop = Databases().observe(other.span)
    await Country.objects.acount()
    stop()
    stop()
    await Country.objects.acount()
    assert (len(tracer.opened), len(other.opened)) == (2, 1)
