"""Models that override `save()` and `asave()`: who calls them, and what is one transaction."""

from __future__ import annotations

from typing import Any, cast

import pytest

from treefold_orm import Model, ModelError, UniqueViolation, create_all, fields, transaction

calls: list[str] = []


class Loud(Model):
    """Overrides both halves, and writes one row more for each."""

    name = fields.CharField(max_length=20, unique=True)
    slug = fields.CharField(max_length=20, default="")
    owner = fields.ForeignKey("Owner", null=True, related_name="louds")

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Set the slug, save, and leave a trace."""
        self.slug = self.name.lower()
        super().save(*args, **kwargs)
        calls.append("save")
        Trace.objects.using(self._alias).create(name=self.name)

    async def asave(self, *args: Any, **kwargs: Any) -> None:
        """Do the same for async code."""
        self.slug = self.name.lower()
        await super().asave(*args, **kwargs)
        calls.append("asave")
        await Trace.objects.using(self._alias).acreate(name=self.name)


class Trace(Model):
    """What an overridden save leaves behind; `bad` cannot be left."""

    name = fields.CharField(max_length=20, unique=True)


class Owner(Model):
    """Has louds, one to many and many to many."""

    name = fields.CharField(max_length=20)
    shared = fields.ManyToManyField(Loud, related_name="sharers")


class SavingMixin:
    """Overrides the sync half alone, in a class that is not a model."""

    def save(self, **kwargs: Any) -> None:
        """Take whatever there is."""
        calls.append("mixed in")
        cast("Any", super()).save(**kwargs)


class OnlySave(SavingMixin, Model):
    """Overrides the sync half alone."""

    name = fields.CharField(max_length=20)


class Raced(Model):
    """Another transaction inserts the row first."""

    name = fields.CharField(max_length=20, unique=True)

    def save(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - none are passed
        """Be too late."""
        Raced.objects.using("other").bulk_create([Raced(name=self.name)], ignore_conflicts=True)
        super().save()

    async def asave(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - as above
        """Be too late."""
        await Raced.objects.using("other").abulk_create(
            [Raced(name=self.name)], ignore_conflicts=True
        )
        await super().asave()


class OnlyAsave(Model):
    """Overrides the async half alone."""

    name = fields.CharField(max_length=20)

    async def asave(self, **kwargs: Any) -> None:
        """Only this one."""
        calls.append("asave")
        await super().asave(**kwargs)


TABLES = (Loud, Trace, Owner, OnlySave, OnlyAsave, Raced)


@pytest.fixture
def tables(empty: Any) -> Any:
    create_all(*TABLES)
    calls.clear()
    return empty


def own(half: Any) -> str:
    return "asave" if half.name == "async" else "save"


async def test_create_goes_through_an_overridden_save(tables: Any, half: Any) -> None:
    made = await half(Loud.objects).create(name="Ann")
    assert (made.slug, calls) == ("ann", [own(half)])
    assert (await half(Loud.objects).get(name="Ann")).slug == "ann"


async def test_get_or_create_goes_through_an_overridden_save(tables: Any, half: Any) -> None:
    for created in (True, False):
        found, was_created = await half(Loud.objects).get_or_create(name="Ann")
        assert (found.slug, was_created, calls) == ("ann", created, [own(half)])


async def test_update_or_create_goes_through_an_overridden_save(tables: Any, half: Any) -> None:
    await half(Loud.objects).update_or_create(name="Ann", defaults={"slug": "x"})
    found, created = await half(Loud.objects).update_or_create(
        slug="ann", defaults={"name": "Bob"}, create_defaults={"name": "Eve"}
    )
    assert (found.name, found.slug, created, calls) == ("Bob", "bob", False, [own(half)] * 2)
    assert await half(Loud.objects).count() == 1


async def test_related_managers_go_through_an_overridden_save(tables: Any, half: Any) -> None:
    owner = await half(Owner.objects).create(name="o")
    made = await half(owner.louds).create(name="Ann")
    assert (made.owner_id, made.slug) == (owner.pk, "ann")
    shared, created = await half(owner.shared).get_or_create(name="Bob")
    assert (shared.slug, created) == ("bob", True)
    assert [x.name for x in await half.rows(owner.shared)] == ["Bob"]
    assert calls == [own(half)] * 2


async def test_bulk_calls_and_updates_go_through_no_save(tables: Any, half: Any) -> None:
    (made,) = await half(Loud.objects).bulk_create([Loud(name="Ann")])
    made.slug = "x"
    await half(Loud.objects).bulk_update([made], ["slug"])
    await half(Loud.objects).update(slug="y")
    assert calls == []


@pytest.mark.parametrize("name", ["get_or_create", "update_or_create"])
async def test_what_an_overridden_save_writes_is_one_transaction(
    tables: Any, half: Any, name: str
) -> None:
    await half(Trace.objects).create(name="Ann")  # the trace of Ann cannot be left
    with pytest.raises(UniqueViolation, match="Trace"):
        await getattr(half(Loud.objects), name)(name="Ann")
    assert await half(Loud.objects).count() == 0
    assert await half(Loud.objects).get_or_create(name="Bob") is not None
    assert await half(Trace.objects).count() == 2


async def test_a_many_to_many_create_is_one_transaction(tables: Any, half: Any) -> None:
    owner = await half(Owner.objects).create(name="o")
    await half(Trace.objects).create(name="Ann")
    with pytest.raises(UniqueViolation, match="Trace"):
        await half(owner.shared).create(name="Ann")
    assert (await half(Loud.objects).count(), await half(owner.shared).count()) == (0, 0)


async def test_inside_a_transaction_it_is_a_savepoint(tables: Any, half: Any) -> None:
    await half(Trace.objects).create(name="Ann")

    def sync() -> None:
        with transaction():
            Loud.objects.create(name="Bob")
            with pytest.raises(UniqueViolation, match="Trace"):
                Loud.objects.get_or_create(name="Ann")

    async def twin() -> None:
        async with transaction():
            await Loud.objects.acreate(name="Bob")
            with pytest.raises(UniqueViolation, match="Trace"):
                await Loud.objects.aget_or_create(name="Ann")

    await half.call(sync, twin)
    assert [x.name for x in await half.rows(Loud.objects.order_by("name"))] == ["Bob"]


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)  # SQLite has one writer
@pytest.mark.parametrize("name", ["get_or_create", "update_or_create"])
async def test_a_row_inserted_in_between_is_found(tables: Any, half: Any, name: str) -> None:
    tables.configure(alias="other")
    found, created = await getattr(half(Raced.objects), name)(name="Ann")
    assert (found.name, created, await half(Raced.objects).count()) == ("Ann", False, 1)


HALVES: list[tuple[Any, str, str]] = [
    (OnlySave, "asave", "OnlySave must define asave.* as well, got save.* alone"),
    (OnlyAsave, "save", "OnlyAsave must define save.* as well, got asave.* alone"),
]
NAMES = ["create", "get_or_create", "update_or_create"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("model", "missing", "message"), HALVES)
async def test_a_model_with_one_half_is_refused_at_the_call_of_the_other(
    tables: Any, half: Any, model: Any, missing: str, message: str, name: str
) -> None:
    call = getattr(half(model.objects), name)
    if own(half) != missing:
        await call(name="x")
        assert len(calls) == 1
        return
    with pytest.raises(ModelError, match=message):
        await call(name="x")
    with pytest.raises(ModelError, match=message):
        await half(model(name="x")).save()
    assert (calls, await half(model.objects).count()) == ([], 0)


async def test_a_blocking_create_in_async_code_names_its_twin(tables: Any) -> None:
    for name in NAMES:
        with pytest.raises(Exception, match=rf"use await a{name}\(\)"):
            getattr(Loud.objects, name)(name="x")


def test_what_a_model_overrides_is_looked_up_once() -> None:
    assert Loud._meta.own_saves == {"save", "asave"}
    assert OnlySave._meta.own_saves == {"save"}
    assert Trace._meta.own_saves == frozenset()
