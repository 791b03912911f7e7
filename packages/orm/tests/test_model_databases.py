"""A model lives on the database that `Meta.database` names, and its queries go there."""

from __future__ import annotations

import copy
import itertools
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from treefold_orm import (
    CTE,
    ConfigurationError,
    DatabaseError,
    Exists,
    FieldError,
    Manager,
    Model,
    ModelError,
    OuterRef,
    Prefetch,
    QuerySet,
    acreate_all,
    aprefetch_related_objects,
    close_all,
    configure,
    create_all,
    fields,
    prefetch_related_objects,
    transaction,
)
from treefold_orm._fields.registry import Registry
from treefold_orm._runtime.connections import _databases

_numbers = itertools.count()


class Visitor(Model):
    name = fields.CharField(max_length=20)


class Analytics(Model):
    class Meta:
        abstract = True
        database = "analytics"


class Origin(Analytics):
    name = fields.CharField(max_length=20)


class Badge(Analytics):
    name = fields.CharField(max_length=20)


class HitQueries(QuerySet["Hit"]):
    def loud(self) -> HitQueries:
        return self.filter(amount__gt=5)


class Hit(Model):
    visitor_key = fields.IntegerField(default=0)
    amount = fields.IntegerField(default=1)
    origin = fields.ForeignKey(Origin, "CASCADE", related_name="hits", null=True)
    badges = fields.ManyToManyField(Badge, related_name="hits")
    objects = HitQueries.as_manager()

    class Meta:
        database = "analytics"


HOMES = {Visitor: "default", Origin: "analytics", Badge: "analytics", Hit: "analytics"}
MODELS: tuple[Any, ...] = tuple(HOMES)


@pytest.fixture(
    params=[("sqlite", "sqlite"), ("sqlite", "postgres"), ("postgres", "postgres")], ids="-".join
)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """Two databases without tables, and a third one that is a copy of the second."""
    _databases.clear()
    schemas: list[str] = []
    engines = (*request.param, request.param[1])
    for alias, engine in zip(("default", "analytics", "replica"), engines, strict=True):
        if engine == "sqlite":
            configure("sqlite", tmp_path / f"{alias}.sqlite3", alias=alias)
        else:
            admin: Any = request.getfixturevalue("admin")
            schemas.append(f"home{next(_numbers)}")
            admin.run(f"CREATE SCHEMA {schemas[-1]}")
            settings = {"search_path": schemas[-1]}
            configure("postgres", admin.dsn, alias=alias, server_settings=settings)
    yield
    close_all()
    _databases.clear()
    for schema in schemas:
        request.getfixturevalue("admin").run(f"DROP SCHEMA {schema} CASCADE")


@pytest.fixture
def tables(pair: None) -> None:
    create_all(*MODELS)
    create_all(*MODELS, using="replica")


# -- where a model lives --------------------------------------------------------------------------


def test_the_nearest_base_with_a_database_counts() -> None:
    class Plain(Model):
        class Meta:
            abstract = True
            ordering = ("id",)

    class First(Plain, Analytics):  # pyright: ignore[reportIncompatibleVariableOverride] - two Metas
        pass

    class Second(Analytics):
        class Meta(Analytics.Meta):
            database = "default"

    class Third(Analytics):
        class Meta(Analytics.Meta):
            table = "other_third"

    homes = {m.__name__: m.objects.db for m in (First, Second, Third)}
    assert homes == {"First": "analytics", "Second": "default", "Third": "analytics"}


@pytest.mark.parametrize("alias", ["", "  ", None, 1, b"analytics", ["default"]])
def test_an_alias_that_is_no_text_is_refused_at_the_definition(alias: Any) -> None:
    body = {"__module__": __name__, "Meta": type("Meta", (), {"database": alias})}
    with pytest.raises(ModelError) as caught:
        type("Thing", (Model,), body)
    assert str(caught.value) == (
        f"Thing.Meta.database must be the alias of a database, got {alias!r}; leave it out for "
        "'default'"
    )


async def test_an_alias_without_a_database_names_the_model(half: Any, tmp_path: Path) -> None:
    _databases.clear()
    configure("sqlite", tmp_path / "d.sqlite3")
    wanted = (
        r"Database 'analytics' is not configured \(default\), and Meta.database of .*Hit.* names "
        r"it: add 'analytics' to the setting databases, or call configure\(alias='analytics'\)"
    )
    calls = [
        lambda: half(Hit.objects).count(),
        lambda: half(Hit.objects).get(id=1),
        lambda: half(Hit.objects).create(),
        lambda: half(Hit()).save(),
        lambda: half(Hit(id=1)).delete(),
        lambda: half(Hit.objects).bulk_create([Hit()]),
        lambda: half.rows(Hit.objects.all()),
        lambda: half.iterate(Hit.objects.all(), 2),
        lambda: half.call(lambda: create_all(Visitor, Hit), lambda: acreate_all(Visitor, Hit)),
    ]
    for call in calls:
        with pytest.raises(ConfigurationError, match=wanted):
            await call()
    with pytest.raises(DatabaseError, match="visitor"):  # not even the other table was made
        await half(Visitor.objects).count()
    close_all()
    _databases.clear()


# -- tables ---------------------------------------------------------------------------------------


async def found(half: Any, alias: str) -> set[str]:
    """The models that have a table on a database."""
    names: set[str] = set()
    links: Any = Hit._meta.relations["badges"].through
    for model in (*MODELS, links.model):
        try:
            await half(model.objects.using(alias)).count()
        except DatabaseError:
            continue
        names.add(model.__name__)
    return names


async def test_each_table_is_created_where_its_model_lives(pair: None, half: Any) -> None:
    await half.call(lambda: create_all(*MODELS), lambda: acreate_all(*MODELS))
    assert await found(half, "default") == {"Visitor"}
    assert await found(half, "analytics") == {"Origin", "Badge", "Hit", "Hit_badges"}
    assert await found(half, "replica") == set()


async def test_models_that_are_named_with_an_alias_get_a_copy(pair: None, half: Any) -> None:
    await half.call(
        lambda: create_all(Visitor, Origin, using="replica"),
        lambda: acreate_all(Visitor, Origin, using="replica"),
    )
    assert await found(half, "replica") == {"Visitor", "Origin"}
    assert await found(half, "default") == await found(half, "analytics") == set()


ALL = """
import asyncio, sqlite3, sys
from treefold_orm import Model, acreate_all, configure, create_all, fields
from treefold_orm.testing import OwnDatabases, sandbox
from pathlib import Path

class Author(Model):
    name = fields.CharField(max_length=20)

class Event(Model):
    class Meta:
        database = "analytics"

folder, kind, using = Path(sys.argv[1]), sys.argv[2], sys.argv[3] or None
for alias in ("default", "analytics", "replica"):
    configure("sqlite", folder / f"{alias}.sqlite3", alias=alias)
if kind == "sync":
    create_all(using=using)
elif kind == "async":
    asyncio.run(acreate_all(using=using))
else:
    own = OwnDatabases(folder / "own")
    (folder / "own").mkdir()
    with own.active():
        own.prepare(folder)
        with sandbox():
            Event.objects.create()
            Author.objects.create(name="x")
            assert (Event.objects.count(), Author.objects.count()) == (1, 1)
        assert (Event.objects.count(), Author.objects.count()) == (0, 0)
    folder = folder / "own"
for file in sorted(folder.glob("*.sqlite3")):
    with sqlite3.connect(file) as database:
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        print(file.stem.split("-")[-1], *sorted(name for name, in database.execute(query)))
"""


@pytest.mark.parametrize(
    ("kind", "using", "printed"),
    [
        ("sync", "", ["analytics event", "default author"]),
        ("async", "", ["analytics event", "default author"]),
        ("sync", "analytics", ["analytics event"]),
        ("async", "default", ["default author"]),
        ("sync", "replica", ["replica author"]),
        ("tests", "", ["default author", "analytics event", "replica author"]),
    ],
)
def test_all_models_go_to_their_own_databases(
    tmp_path: Path, kind: str, using: str, printed: list[str]
) -> None:
    command = [sys.executable, "-c", ALL, str(tmp_path), kind, using]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == printed


# -- queries and rows -----------------------------------------------------------------------------


async def test_every_call_goes_to_the_database_of_the_model(tables: None, half: Any) -> None:
    origin = await half(Origin.objects).create(name="mail")
    hit = Hit(origin=origin)
    await half(hit).save()
    await half(hit.badges).create(name="new")
    await half(origin.hits).create(amount=7)
    await half(Hit.objects).bulk_create([Hit(amount=9)])
    assert [await half(Hit.objects.using(a)).count() for a in ("analytics", "replica")] == [3, 0]
    assert await half(Hit.objects.loud()).count() == 2
    assert await half(Badge.objects.filter(hits=hit)).count() == 1
    assert (await half(Hit.objects).get(id=hit.pk)).origin_id == origin.pk
    table = Hit._meta.table
    assert len(await half(Hit.objects).raw(f"SELECT * FROM {table}")) == 3
    hit.amount = 6
    await half(hit).save()
    await half(hit).refresh_from_db()
    assert await half(Hit.objects.filter(amount=6)).update(amount=8) == 1
    assert await half(Hit.objects.filter(amount=8)).delete() == 1
    found = await half.rows(Hit.objects.select_related("origin").order_by("id"))
    assert [(row._alias, row.amount) for row in found] == [("analytics", 7), ("analytics", 9)]
    assert found[0].origin.name == "mail"
    loaded = await half.rows(Origin.objects.prefetch_related("hits__badges"))
    assert [row.amount for row in loaded[0].hits.all()] == [7]
    assert len(await half.iterate(Hit.objects.all(), 1)) == 2


async def test_using_chooses_another_database(tables: None, half: Any) -> None:
    origin = await half(Origin.objects.using("replica")).create(name="copy")
    assert origin._alias == "replica"
    origin.name = "copied"
    await half(origin).save()
    read = await half(Origin.objects.using("replica")).get(id=origin.pk)
    assert (read._alias, read.name) == ("replica", "copied")
    assert pickle.loads(pickle.dumps(read))._alias == "replica"
    await half(read.hits).create(amount=3)
    assert await half(Hit.objects.using("replica")).count() == 1
    assert await half(Hit.objects).count() == await half(Origin.objects).count() == 0
    await half(read).save(using="analytics", force_insert=True)
    assert read._alias == "analytics"
    assert await half(Origin.objects).count() == 1


async def test_a_row_knows_its_database_wherever_it_was_read(tables: None, half: Any) -> None:
    visitor = await half(Visitor.objects).create(name="x")
    for alias in ("default", "replica"):
        if alias != "default":
            await half(Visitor.objects.using(alias)).create(name="y")
        row = await half(Visitor.objects.using(alias)).get(name="x" if alias == "default" else "y")
        assert row._alias == alias
    assert (copy.copy(visitor)._alias, Hit()._alias) == ("default", "analytics")


async def test_a_replica_of_two_models_is_asked_alone(tables: None, half: Any) -> None:
    origin = await half(Origin.objects.using("replica")).create(name="copy")
    await half(Hit.objects.using("replica")).create(origin=origin)
    named = Origin.objects.filter(name="copy")
    for query in (
        Hit.objects.using("replica").filter(origin__in=named),
        Hit.objects.using("replica").filter(Exists(named.filter(pk=OuterRef("origin")))),
        Hit.objects.using("replica").filter(id__in=Hit.objects.all()) & Hit.objects.all(),
    ):
        assert await half(query).count() == 1
    assert await half(Hit.objects.filter(origin__in=named)).count() == 0


BOTH = "of the database 'analytics' and the query of 'default'"


@pytest.mark.parametrize(
    "meet",
    [
        lambda: Visitor.objects.filter(id__in=Hit.objects.values("visitor_key")),
        lambda: Visitor.objects.exclude(id__in=Hit.objects.loud().values("visitor_key")),
        lambda: Visitor.objects.using("default").filter(id__in=Hit.objects.values("visitor_key")),
        lambda: Visitor.objects.filter(
            Exists(Hit.objects.using("analytics").filter(visitor_key=OuterRef("id")))
        ),
        lambda: Visitor.objects.values("id").union(Hit.objects.values("id")),
        lambda: Visitor.objects.join(CTE(Hit.objects.values("visitor_key")), visitor_key="pk"),
        lambda: Visitor.objects.filter(
            id__in=Visitor.objects.filter(id__in=Hit.objects.values("visitor_key")).values("id")
        ),
    ],
)
def test_queries_of_two_databases_are_refused(meet: Any) -> None:
    with pytest.raises(FieldError, match=BOTH) as caught:
        meet()
    assert "using" in str(caught.value) or "read the values of one first" in str(caught.value)


async def test_a_query_in_the_other_direction_is_refused(tables: None, half: Any) -> None:
    keys = Visitor.objects.values("id")
    with pytest.raises(FieldError, match="of the database 'default' and the query of 'analytics'"):
        Hit.objects.filter(visitor_key__in=keys)
    # where both have a table on one database, `using` on both says so
    both = Hit.objects.using("replica").filter(visitor_key__in=keys.using("replica"))
    assert await half(both).count() == 0
    with pytest.raises(FieldError, match="'default' and the query of 'replica'"):
        Hit.objects.using("replica").filter(visitor_key__in=keys)


async def test_a_prefetch_of_a_replica_is_a_statement_there(tables: None, half: Any) -> None:
    origin = await half(Origin.objects).create(name="mail")
    await half(Hit.objects).create(origin=origin, amount=1)
    copy_of_it = await half(Origin.objects.using("replica")).create(name="copy")
    await half(Hit.objects.using("replica")).create(origin=copy_of_it, amount=2)
    assert origin.pk == copy_of_it.pk
    others = Prefetch("hits", Hit.objects.using("replica"))
    (found,) = await half.rows(Origin.objects.prefetch_related(others))
    assert [(hit._alias, hit.amount) for hit in found.hits.all()] == [("replica", 2)]
    await half.call(
        lambda: prefetch_related_objects([origin], others),
        lambda: aprefetch_related_objects([origin], others),
    )
    assert [(hit._alias, hit.amount) for hit in origin.hits.all()] == [("replica", 2)]
    hit = found.hits.all()[0]
    hit.amount = 3
    await half(Hit.objects).bulk_update([hit], ["amount"])
    assert await half(Hit.objects.using("replica").filter(amount=3)).exists()


async def test_sets_of_other_databases_are_refused(tables: None, half: Any) -> None:
    origin = await half(Origin.objects).create(name="mail")
    with pytest.raises(FieldError, match="'replica'"):
        await half(origin.hits).set(Hit.objects.using("replica"))
    await half(origin.hits).set(Hit.objects.all())


async def test_transactions_are_those_of_the_database(tables: None, half: Any) -> None:
    async def write() -> None:
        async with transaction("analytics", rollback=True), transaction(rollback=True):
            await Origin.objects.acreate(name="gone")
            await Visitor.objects.acreate(name="gone")

    def write_sync() -> None:
        with transaction("analytics", rollback=True), transaction(rollback=True):
            Origin.objects.create(name="gone")
            Visitor.objects.create(name="gone")

    await half.call(write_sync, write)
    assert await half(Origin.objects).count() == await half(Visitor.objects).count() == 0


def test_a_manager_that_was_placed_stays_there(tables: None) -> None:
    class Elsewhere(Analytics):
        objects = Manager["Elsewhere"]()
        copies = Manager["Elsewhere"]().db_manager("replica")

    assert (Elsewhere.objects.db, Elsewhere.copies.db) == ("analytics", "replica")
    assert QuerySet(Elsewhere).db == "analytics"
    assert QuerySet(Elsewhere, using="replica").db == "replica"


# -- relations between databases ------------------------------------------------------------------


def related(kind: str) -> tuple[type[Model], ...]:
    """Two models of two databases with a relation."""
    own = {"__module__": __name__, "_registry": Registry()}  # no other test sees them
    target: Any = type("Pointed", (Model,), dict(own))
    field = {
        "key": lambda: fields.ForeignKey(target, related_name="+"),
        "one": lambda: fields.OneToOneField(target, related_name="+"),
        "many": lambda: fields.ManyToManyField(target, related_name="+"),
    }[kind]()
    meta = type("Meta", (), {"database": "analytics"})
    return target, type("Pointing", (Model,), {**own, "link": field, "Meta": meta})


@pytest.mark.parametrize("using", [None, "default", "analytics"])
@pytest.mark.parametrize("kind", ["key", "one", "many"])
async def test_a_relation_between_databases_is_refused(
    pair: None, half: Any, kind: str, using: str | None
) -> None:
    models = related(kind)
    with pytest.raises(ModelError) as caught:
        await half.call(
            lambda: create_all(*models, using=using), lambda: acreate_all(*models, using=using)
        )
    assert str(caught.value) == (
        "Pointing.link cannot lead to Pointed: Pointing is of the database 'analytics', and "
        "Pointed of 'default'; keep the key in a plain field, or give both models the same "
        "Meta.database"
    )
    with pytest.raises(DatabaseError, match="pointed"):  # no statement was sent
        await half(models[0].objects).count()


@pytest.mark.parametrize("kind", ["key", "one", "many"])
async def test_no_query_follows_a_relation_between_databases(
    pair: None, half: Any, kind: str
) -> None:
    """Where the wrong database has a table of that name, it would be read without a word."""
    pointed, pointing = related(kind)
    manager: Any = pointing.objects
    for ask in (
        lambda: manager.filter(link__id=1),
        lambda: manager.select_related("link") if kind != "many" else manager.values("link"),
        lambda: manager.prefetch_related("link"),
    ):
        with pytest.raises(ModelError, match=r"Pointing\.link cannot lead to Pointed"):
            ask()
    instance: Any = pointing(id=1) if kind == "many" else pointing(id=1, link_id=1)
    with pytest.raises(ModelError, match="cannot lead to"):
        await half.call(lambda: list(instance.link.all()), lambda: instance.aload("link"))
    assert pointed.objects.db == "default"
