"""The calls of the walk: each is first asked of the oracle, which says how it must end."""

from __future__ import annotations

import decimal
import random
from collections.abc import Awaitable, Callable
from typing import Any

from orm_halves import Handle

from faults.oracle import MODELS, Coin, Counted, More, Oracle, Shadow, State
from treefold_orm import F, IntegrityError, StaleObject, UniqueViolation, transaction

Call = Callable[[], Awaitable[Any]]


def unshared(number: int) -> int:
    """The number, or another one where Python has only one object of it.

    A rollback takes an attribute back that is still the object which `save()` has set: setting that
    same object again is no change that an ORM could see.
    """
    return 1000 + number if abs(number) < 1000 else number


class Undo(Exception):
    """Raised by the walk to roll a block back."""


class Steps:
    """Random calls on one database in one half."""

    def __init__(self, h: Handle, engine: str, seed: str) -> None:
        self.h = h
        self.engine = engine
        self.source = random.Random(seed)  # noqa: S311, RUF100 - the same walk in every run
        self.oracle = Oracle()
        self.hooks: list[str] = []
        self.numbers = 0
        self.log: list[str] = []
        # instances that the running call updates, and whether it does so with one statement
        self.alone: list[Shadow] = []
        self.single = True

    def number(self) -> int:
        """A number that was not given before."""
        self.numbers += 1
        return 1000 + self.numbers

    async def steps(self, *, nested: bool = True) -> None:
        """A few random calls."""
        for _ in range(self.source.randrange(1, 5)):
            await self.step(nested=nested)

    async def step(self, *, nested: bool) -> None:
        """One random call."""
        choices: list[tuple[Callable[[], Awaitable[None]], int]] = [
            (self.change, 4),
            (self.save, 6),
            (self.save_named, 2),
            (self.create, 2),
            (self.delete, 1),
            (self.bulk_create, 2),
            (self.bulk_update, 2),
            (self.update, 2),
            (self.upsert, 1),
            (self.update_or_create, 2),
            (self.refresh, 2),
            (self.get, 2),
            (self.copy, 1),
            (self.make, 2),
        ]
        if nested and len(self.oracle.levels) < 4:
            choices += [(self.savepoint, 3), (self.hook, 1)]
        calls, weights = zip(*choices, strict=True)
        (call,) = self.source.choices(calls, weights)
        self.log.append(f"{'  ' * len(self.oracle.levels)}{call.__name__}")
        await call()

    def pick(self, *statuses: str, model: Any = None) -> Shadow | None:
        """An instance in one of these states."""
        found = [
            shadow
            for shadow in self.oracle.shadows
            if shadow.state.status in statuses and model in (None, shadow.model)
        ]
        if not found:
            return None
        chosen = self.source.choice(found)
        self.log[-1] += f" {self.shown(chosen)}"
        return chosen

    def shown(self, shadow: Shadow) -> str:
        state = shadow.state
        return f"{shadow.model.__name__}@{id(shadow) % 9973} {state.status} {state.attrs}"

    def values(self, model: Any, name: str = "") -> dict[str, Any]:
        """Values of a new row."""
        name = name or self.name(model)
        attrs: dict[str, Any] = {"name": name, "count": self.number()}
        if model is Coin:
            cents = decimal.Decimal(self.number()) / 100
            return {**attrs, "price": cents, "owner_id": self.source.choice([None, 1, 2])}
        return attrs

    def name(self, model: Any) -> str:
        """The name of another row, or one that is new."""
        rows = self.oracle.table[model].values()
        if rows and self.source.random() < 0.15:
            return str(self.source.choice([row["name"] for row in rows]))
        return f"n{self.number()}"

    def new(self, model: Any, name: str = "") -> Shadow:
        """An instance that is not saved."""
        attrs = self.values(model, name)
        obj = model(**attrs)
        if model is Counted:
            attrs |= {"version": 1, "changed": obj.changed}
        return self.oracle.made(obj, attrs)

    async def attempt(
        self, refusal: Any, call: Call, *, statements: int = 1, sends: bool = True
    ) -> bool:
        """Make a call that must end as the oracle says; True where it was done.

        A violation on PostgreSQL is put into a savepoint, as the documents ask for, unless the call
        has one of its own. A call that sends nothing is no write.
        """
        if sends:
            self.oracle.writes()
        if refusal is None:
            await call()
            return True
        self.log[-1] += f" -> {refusal.__name__}"
        violates = issubclass(refusal, IntegrityError)
        apart = self.engine == "postgres" and statements == 1
        if self.oracle.levels and violates and (apart or self.source.random() < 0.3):
            level = self.oracle.begin()

            async def block() -> None:
                async with self.h.transaction():
                    await call()

            await self.fails(refusal, block)
            self.oracle.rollback(level)
        else:
            await self.fails(refusal, call)
        return False

    async def fails(self, refusal: Any, call: Call) -> None:
        """Make a call that must raise."""
        try:
            await call()
        except refusal:
            return
        raise AssertionError(f"{refusal} was not raised")

    async def make(self) -> None:
        self.new(self.source.choice(MODELS))

    async def change(self) -> None:
        shadow = self.pick("new", "stored", "stored", "deleted")
        if shadow is not None:
            self.set_one(shadow)

    def set_one(self, shadow: Shadow) -> None:
        names = ["count", "count", "name"] + ["price", "owner_id"] * (shadow.model is Coin)
        name = self.source.choice(names)
        value: Any
        if name == "count" and shadow.state.status == "stored" and self.source.random() < 0.4:
            value = More(self.source.choice([1, -1]) * self.number())
        else:
            value = self.values(shadow.model)[name]
            if shadow.state.seen and self.source.random() < 0.25:
                seen = shadow.state.seen[name]  # as it was: nothing is to be written
                value = seen if name != "count" else unshared(seen)
        self.log[-1] += f" {name}={value}"
        self.oracle.app_set(shadow, name, value)

    async def save(self) -> None:
        shadow = self.pick("new", "stored", "deleted")
        if shadow is None:
            return
        if self.source.random() < 0.6:
            self.set_one(shadow)
        self.alone, self.single = [] if shadow.inserts else [shadow], True
        await self.save_one(shadow)

    async def save_one(self, shadow: Shadow) -> None:
        """`save()` as the oracle says."""
        refusal, sends = self.oracle.refusal_of_save(shadow), self.oracle.sends(shadow)
        if await self.attempt(refusal, self.h(shadow.obj).save, sends=sends):
            self.oracle.saved(shadow)

    async def save_named(self) -> None:
        shadow = self.pick("stored")
        if shadow is None or shadow.inserts:
            return
        names = self.source.sample(["name", "count"], self.source.randrange(1, 3))
        self.alone, self.single = [shadow], True
        refusal = self.oracle.refusal_of_save(shadow, names)
        if await self.attempt(refusal, lambda: self.h(shadow.obj).save(update_fields=names)):
            self.oracle.saved(shadow, names)

    async def create(self) -> None:
        model = self.source.choice(MODELS)
        attrs = self.values(model)
        refusal = UniqueViolation if self.oracle.taken(model, attrs["name"]) else None
        made: list[Any] = []

        async def call() -> None:
            made.append(await self.h(model.objects).create(**attrs))

        if await self.attempt(refusal, call):
            self.follow(made[0], attrs)

    def follow(self, obj: Any, attrs: dict[str, Any]) -> None:
        """Follow an instance that a call has made and inserted."""
        if isinstance(obj, Counted):
            attrs = {**attrs, "version": obj.version, "changed": obj.changed}
        elif "price" not in attrs:
            attrs = {**attrs, "price": decimal.Decimal(0), "owner_id": None}
        shadow = self.oracle.add(obj, State("new", {"id": None, **attrs}))
        self.oracle.inserted(shadow)

    async def delete(self) -> None:
        shadow = self.pick("stored", "deleted")
        if shadow is None or shadow.key is None:
            return
        counts: list[int] = []

        async def call() -> None:
            counts.append(await self.h(shadow.obj).delete())

        if await self.attempt(self.oracle.refusal_of_delete(shadow), call):
            assert counts == [self.oracle.deleted(shadow)]

    async def bulk_create(self) -> None:
        model = self.source.choice(MODELS)
        shadows = [self.new(model) for _ in range(self.source.randrange(1, 4))]
        again = [
            shadow
            for shadow in self.oracle.shadows
            if shadow.model is model
            and shadow.state.status == "new"
            and shadow not in shadows
            and not isinstance(shadow.state.attrs["count"], More)
        ]
        shadows += again[:1]
        names = [shadow.state.attrs["name"] for shadow in shadows]
        fits = len({*names}) == len(names) and not any(self.oracle.taken(model, n) for n in names)
        size = self.source.choice([None, 1, 2])
        pieces = 1 if size is None else -(-len(shadows) // size)
        call: Call = lambda: self.h(model.objects).bulk_create(  # noqa: E731 - a call to be made
            [shadow.obj for shadow in shadows], batch_size=size
        )
        if await self.attempt(None if fits else UniqueViolation, call, statements=pieces):
            for shadow in shadows:
                self.oracle.inserted(shadow)

    async def bulk_update(self) -> None:
        model = self.source.choice(MODELS)
        chosen: dict[int, Shadow] = {}
        for shadow in self.oracle.shadows:
            row = self.oracle.table[model].get(shadow.key)
            state = shadow.state
            if shadow.model is model and state.status == "stored" and row is not None:
                chosen.setdefault(shadow.key, shadow)
        shadows = [*chosen.values()][: self.source.randrange(1, 5)]
        if not shadows:
            return
        for shadow in shadows:
            if self.source.random() < 0.6:
                self.log[-1] += f" {self.shown(shadow)}"
                value = More(self.number()) if self.source.random() < 0.3 else self.number()
                self.oracle.app_set(shadow, "count", value)
        names = ["count"] + ["price"] * (model is Coin)
        table = self.oracle.table[model]
        stale = [s for s in shadows if table[s.key].get("version") != s.state.seen.get("version")]
        size = self.source.choice([None, 1, 2])
        computed = any(isinstance(s.state.attrs["count"], More) for s in shadows)
        fits = len(shadows) <= (size or 200) and len(shadows) in (1, 2, 4)
        self.alone, self.single = shadows, model is Coin and fits and not computed
        call: Call = lambda: self.h(model.objects).bulk_update(  # noqa: E731 - a call to be made
            [shadow.obj for shadow in shadows], names, batch_size=size
        )
        if await self.attempt(StaleObject if stale else None, call):
            for shadow in shadows:
                self.oracle.written(shadow, names)

    async def update(self) -> None:
        model = self.source.choice(MODELS)
        rows = self.oracle.table[model]
        keys = [key for key in rows if self.source.random() < 0.3]
        value = More(self.number()) if self.source.random() < 0.5 else self.number()
        given = F("count") + value.by if isinstance(value, More) else value
        found: list[int] = []

        async def call() -> None:
            found.append(await self.h(model.objects.filter(pk__in=keys)).update(count=given))

        await self.attempt(None, call)
        assert found == [len(keys)]
        self.oracle.updated(model, keys, "count", value)

    async def upsert(self) -> None:
        model = self.source.choice(MODELS)
        shadows = [self.new(model) for _ in range(self.source.randrange(1, 4))]
        if len({s.state.attrs["name"] for s in shadows}) < len(shadows):
            return
        size = self.source.choice([None, 1])
        call: Call = lambda: self.h(model.objects).bulk_create(  # noqa: E731 - a call to be made
            [shadow.obj for shadow in shadows],
            update_conflicts=["count"],
            unique_fields=["name"],
            batch_size=size,
        )
        await self.attempt(None, call)
        for shadow in shadows:
            self.oracle.upserted(shadow)

    async def update_or_create(self) -> None:
        model = self.source.choice(MODELS)
        name, count = self.name(model), self.number()
        rows = self.oracle.table[model]
        known = next((k for k, r in rows.items() if r["name"] == name), None)
        finds = self.source.random() < 0.5
        found: list[Any] = []

        async def call() -> None:
            manager = self.h(model.objects)
            method = manager.get_or_create if finds else manager.update_or_create
            found.extend(await method(name=name, defaults={"count": count}))

        await self.attempt(None, call)
        assert found[1] is (known is None)
        if known is None:
            self.follow(found[0], {"name": name, "count": count})
            return
        row = dict(rows[known])
        shadow = self.oracle.read(found[0], row)
        if not finds:
            self.oracle.app_set(shadow, "count", count)
            self.oracle.saved(shadow)

    async def refresh(self) -> None:
        shadow = self.pick("stored")
        if shadow is None or shadow.key not in self.oracle.table[shadow.model]:
            return
        names = self.source.choice([None, None, ["count"], ["name", "count"]])
        await self.h(shadow.obj).refresh_from_db(fields=names)
        self.oracle.refreshed(shadow, names)

    async def get(self) -> None:
        model = self.source.choice(MODELS)
        rows = self.oracle.table[model]
        if rows:
            key = self.source.choice([*rows])
            obj = await self.h(model.objects).get(pk=key)
            shadow = self.oracle.read(obj, dict(rows[key]))
            self.log[-1] += f" {self.shown(shadow)}"

    async def copy(self) -> None:
        shadow = self.pick("stored", "deleted")
        if shadow is None:
            return
        self.oracle.app_set(shadow, "id", None)
        self.oracle.app_set(shadow, "name", self.name(shadow.model))
        await self.save_one(shadow)

    async def savepoint(self) -> None:
        level = self.oracle.begin()
        undo = self.source.random() < 0.5
        try:
            async with self.h.transaction():
                await self.steps()
                if undo:
                    raise Undo
        except Undo:
            self.oracle.rollback(level)
        else:
            self.oracle.commit(level)

    async def hook(self) -> None:
        name = f"hook {self.number()}"
        transaction.on_commit(lambda: self.hooks.append(name))
        self.oracle.levels[-1].hooks.append(name)
