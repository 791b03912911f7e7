"""The ORM inside an application: settings, models of several applications, pools, watching."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import logging
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from orm_models import Author, Country

from treefold_orm import (
    ConfigurationError,
    FieldValueError,
    ForeignKeyViolation,
    InvalidParameter,
    OperationalError,
    PoolTimeout,
    ProtectedError,
    UniqueViolation,
    ValidationError,
    acreate_all,
    configure,
    registry,
)
from treefold_orm._fields.registry import _entered
from treefold_orm._framework.extension import Databases
from treefold_orm._runtime.connections import _databases, database_for
from treefold_orm.testing import sandbox


@dataclass
class Settings:
    """The part of an application's settings that is read."""

    databases: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass
class App:
    """The part of an application that is read."""

    root: Path
    settings: Settings


def app(root: Path, **databases: str) -> App:
    """An application with databases in its settings."""
    root.mkdir(exist_ok=True)
    return App(root, Settings(databases))


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """No database and no space is left for the next test."""
    yield
    for database in list(_databases.values()):
        database.close()
    _databases.clear()
    _entered.set("")


def place(alias: str = "default") -> Any:
    """What is behind an alias."""
    database: Any = database_for(alias)
    return database.database


def test_it_is_found_by_its_entry_point() -> None:
    (point,) = entry_points(group="treefold.extensions", name="databases")
    assert point.load() is Databases


def test_settings_configure_every_alias(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Databases().setup(app(tmp_path, default="sqlite:///a.sqlite3", other="sqlite:///b.sqlite3"))
    assert (place(), place("other")) == (str(tmp_path / "a.sqlite3"), str(tmp_path / "b.sqlite3"))


def test_an_explicit_configure_wins_before_and_after(tmp_path: Path) -> None:
    one = Databases()
    configure("sqlite", tmp_path / "explicit.sqlite3")
    one.setup(app(tmp_path, default=f"sqlite:///{tmp_path}/settings.sqlite3"))
    assert place().endswith("explicit.sqlite3")
    configure("sqlite", tmp_path / "again.sqlite3")
    asyncio.run(one.startup())
    assert place().endswith("again.sqlite3")
    asyncio.run(one.shutdown())


def test_a_wrong_address_names_its_alias_and_no_secret(tmp_path: Path) -> None:
    wrong = app(tmp_path, reports="mysql://u:hunter2@h/db")
    with pytest.raises(ConfigurationError, match="Database 'reports' has the scheme") as refused:
        Databases().setup(wrong)
    assert "hunter2" not in str(refused.value)


def test_applications_one_after_the_other_have_their_own(tmp_path: Path) -> None:
    one, two = Databases(), Databases()
    first = app(tmp_path / "one", default=f"sqlite:///{tmp_path}/one.sqlite3")
    second = app(tmp_path / "two", default=f"sqlite:///{tmp_path}/two.sqlite3")
    one.setup(first)
    two.setup(second)
    for extension, name in ((one, "one"), (two, "two"), (one, "one")):
        asyncio.run(extension.startup())
        assert place().endswith(f"{name}.sqlite3")
        asyncio.run(extension.shutdown())


def test_applications_at_once_may_share_an_address_but_not_an_alias(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/shared.sqlite3"
    one, two, three = Databases(), Databases(), Databases()
    one.setup(app(tmp_path / "one", default=address))
    asyncio.run(one.startup())
    two.setup(app(tmp_path / "two", default=address))
    asyncio.run(two.startup())
    with pytest.raises(ConfigurationError, match="in use by another application"):
        three.setup(app(tmp_path / "three", default=f"sqlite:///{tmp_path}/3.sqlite3"))
    asyncio.run(one.shutdown())
    asyncio.run(two.shutdown())
    three.setup(app(tmp_path / "three", default=f"sqlite:///{tmp_path}/3.sqlite3"))
    assert place().endswith("3.sqlite3")


async def test_the_last_application_closes_everything(tmp_path: Path) -> None:
    shared = f"sqlite:///{tmp_path}/shared.sqlite3"
    one, two = Databases(), Databases()
    one.setup(app(tmp_path / "one", default=shared, own=f"sqlite:///{tmp_path}/own.sqlite3"))
    two.setup(app(tmp_path / "two", default=shared))
    await one.startup()
    await two.startup()
    await acreate_all(Country)
    await acreate_all(Country, using="own")
    await one.shutdown()
    assert (database_for("default").in_use, database_for("own").in_use) == (True, False)
    assert await Country.objects.acount() == 0
    await two.shutdown()
    assert not database_for("default").in_use


def test_a_sandbox_stays_when_its_application_starts(tmp_path: Path) -> None:
    one, two = Databases(), Databases()
    one.setup(app(tmp_path / "one", default=f"sqlite:///{tmp_path}/one.sqlite3"))
    with sandbox("default"):  # other tests may have left aliases
        held = database_for("default")
        asyncio.run(one.startup())
        asyncio.run(one.shutdown())
        assert database_for("default") is held
        with pytest.raises(ConfigurationError, match="in a sandbox of another application"):
            two.setup(app(tmp_path / "two", default=f"sqlite:///{tmp_path}/two.sqlite3"))


# -- models of several applications ---------------------------------------------------------------

SHOP = """
from treefold_orm import Model, fields
class Volume(Model):
    title = fields.CharField(max_length=10)
    author = fields.ForeignKey("Novelist", related_name="volumes")
    tags = fields.ManyToManyField("Sticker", related_name="volumes")
class Novelist(Model):
    name = fields.CharField(max_length=10)
class Sticker(Model):
    name = fields.CharField(max_length=10)
"""


def imported(root: Path, source: str) -> ModuleType:
    """Import `Models/shop.py` of a root, as an application does: under the same name everywhere."""
    (root / "Models").mkdir(parents=True, exist_ok=True)
    (root / "Models" / "shop.py").write_text(source)
    spec = importlib.util.spec_from_file_location("Models.shop", root / "Models" / "shop.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["Models.shop"] = module
    spec.loader.exec_module(module)
    return module


def test_models_of_two_applications_stay_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "Models.shop", ModuleType("Models.shop"))
    for root in ("one", "two"):
        Databases().setup(app(tmp_path / root, **{root: f"sqlite:///{tmp_path}/{root}.sqlite3"}))
    one = imported(tmp_path / "one", SHOP)
    two = imported(tmp_path / "two", SHOP)
    for module in (one, two):
        meta = module.Volume._meta
        assert meta.relations["author"].target.model is module.Novelist
        assert meta.relations["tags"].target.model is module.Sticker
        assert meta.relations["tags"].through.space == meta.space
    registry.enter_application_folder(tmp_path / "one")
    found = {meta.model for meta in registry.list_application_models()}
    assert one.Volume in found
    assert Country in found  # of no application
    assert not {two.Volume, two.Novelist, two.Sticker} & found


async def test_tables_are_made_of_the_models_of_this_application(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_models", {})  # those of other tests belong to no application
    monkeypatch.setitem(sys.modules, "Models.shop", ModuleType("Models.shop"))
    for name, column in (("one", "title"), ("two", "name")):
        root = tmp_path / name
        extension = Databases()
        extension.setup(app(root, default=f"sqlite:///{tmp_path}/{name}.sqlite3"))
        await extension.startup()
        module = imported(root, SHOP.replace("title", column))
        await acreate_all()
        author = await module.Novelist.objects.acreate(name="Ann")
        book = await module.Volume.objects.acreate(author=author, **{column: "x"})
        await book.tags.acreate(name="t")
        assert await book.tags.acount() == 1
        await extension.shutdown()


# -- what a request is told, and what a developer is ----------------------------------------------


def test_refusals_are_numbers_and_text() -> None:
    refusals = Databases().refusals
    invalid = InvalidParameter("Shelf", "page", reason="is at most 20")
    entry = {
        "loc": ["query", "page"],
        "msg": "Parameter 'page' is at most 20",
        "type": "value_error",
    }
    assert refusals[InvalidParameter](invalid) == (422, "A parameter is not valid", [entry])
    unfit = refusals[FieldValueError](FieldValueError("Book", "title", reason="is too long"))
    assert unfit[:2] == (422, "title: is too long")
    assert unfit[2] == [{"loc": ["title"], "msg": "is too long", "type": "value_error"}]
    busy = refusals[PoolTimeout](PoolTimeout("No connection became free"))
    assert busy == (503, "The database cannot answer now", None)
    full = refusals[OperationalError](OperationalError("Its disk is full", code="53100"))
    assert full == busy


async def test_a_client_is_told_which_field_is_taken_and_no_value(db: Any) -> None:
    await Country.objects.acreate(name="Zq9")
    with pytest.raises(UniqueViolation) as taken:
        await Country.objects.acreate(name="Zq9")
    entry = {"loc": ["name"], "msg": "exists already", "type": "unique"}
    refuse = Databases().refusals[UniqueViolation]
    assert refuse(taken.value) == (409, "name: exists already", [entry])
    unknown = UniqueViolation("a constraint exists already", constraint="one_email")
    assert refuse(unknown) == (409, "There is such an entry already", None)


async def test_a_client_is_told_that_a_reference_leads_nowhere(db: Any) -> None:
    with pytest.raises(ForeignKeyViolation) as missing:
        await Author.objects.acreate(name="Ann", country_id=99)
    status, detail, entries = Databases().refusals[ForeignKeyViolation](missing.value)
    assert (status, "is missing, or others refer" in detail) == (409, True)
    assert [entry["loc"] for entry in entries or ()] in ([], [["country"]])
    protected = ProtectedError("2 rows", protected_objects=["a secret"], count=2)
    refused = (409, "Other entries refer to this one", None)
    assert Databases().refusals[ForeignKeyViolation](protected) == refused


def test_a_client_is_told_what_full_clean_found_by_field() -> None:
    found = ValidationError({"title": ["is empty", "is no title"], "__all__": "ends too early"})
    assert Databases().refusals[ValidationError](found) == (
        422,
        "title: is empty, is no title; ends too early",
        [
            {"loc": ["title"], "msg": "is empty", "type": "value_error"},
            {"loc": ["title"], "msg": "is no title", "type": "value_error"},
            {"loc": ["__all__"], "msg": "ends too early", "type": "value_error"},
        ],
    )
    named = ValidationError({"title": "is empty"}, model="Book")
    assert Databases().refusals[ValidationError](named)[1] == "title: is empty"


def ask() -> None:
    """Ask four times from one line."""
    for number in range(4):
        Country.objects.filter(name=str(number)).exists()  # here


async def aask() -> None:
    """`ask` for async code."""
    for number in range(4):
        await Country.objects.filter(name=str(number)).aexists()  # ahere


@pytest.mark.parametrize("mark", ["# here", "# ahere"])
async def test_a_watch_counts_and_names_what_repeats(
    db: Any, mark: str, caplog: pytest.LogCaptureFixture
) -> None:
    extension = Databases()
    extension._root = Path(__file__).parent
    end = extension.watch()
    await (asyncio.to_thread(ask) if mark == "# here" else aask())
    with caplog.at_level(logging.WARNING, "treefold.orm"):
        said = end()
    assert said.startswith("4 queries in ")
    assert said.endswith("ms")
    (record,) = caplog.records
    lines = inspect.getsource(sys.modules[__name__]).splitlines()
    (number,) = (n for n, line in enumerate(lines, 1) if line.endswith(f"  {mark}"))
    place = f"4 times the same query in one request, from test_extension.py:{number}; load"
    assert place in record.getMessage()


async def test_a_watch_is_silent_where_nothing_repeats(
    db: Any, caplog: pytest.LogCaptureFixture
) -> None:
    end = Databases().watch()
    await Country.objects.aexists()
    await Country.objects.acount()
    with caplog.at_level(logging.WARNING, "treefold.orm"):
        assert end().startswith("2 queries in ")
        assert Databases().watch()() == ""
    assert caplog.records == []
