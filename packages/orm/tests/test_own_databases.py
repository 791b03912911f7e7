"""Databases of a test run: they replace the configured ones, on both engines."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orm_postgres
import pytest
from orm_models import Country

from treefold_orm import ConfigurationError, configure, create_all
from treefold_orm._drivers.postgres import PostgresDatabase
from treefold_orm._framework.own_databases import LONGEST_NAME, _shorten_database_name
from treefold_orm._runtime.connections import _databases, database_for, make_unregistered_database
from treefold_orm.testing import OwnDatabases, sandbox


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """No database is configured before and after a test."""
    _databases.clear()
    yield
    for database in list(_databases.values()):
        database.close()
    _databases.clear()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[OwnDatabases]:
    (tmp_path / "run").mkdir()
    made = OwnDatabases(tmp_path / "run")
    yield made
    made.close()


@pytest.fixture
def real(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database that nothing may be done with."""
    if engine == "sqlite":
        yield f"sqlite:///{tmp_path}/real.sqlite3"
        return
    with orm_postgres.database(request.getfixturevalue("postgres_dsn")) as address:
        yield address


def databases_like(dsn: str, name: str) -> list[str]:
    """The databases of a server whose names begin alike."""
    sql = "SELECT coalesce(string_agg(datname, ' ' ORDER BY datname), '') FROM pg_database"
    return orm_postgres.ask(dsn, f"{sql} WHERE datname LIKE '{name}%'").split()


@pytest.mark.parametrize("when", ["before", "during"])
def test_a_configured_database_is_replaced(own: OwnDatabases, real: str, when: str) -> None:
    if when == "before":
        configure(database=real)
    with own.active():
        if when == "during":
            configure(database=real)
        create_all(Country)
        Country.objects.create(name="of the run")
    with own.active():
        assert Country.objects.count() == 1
    own.close()
    configure(database=real)
    with pytest.raises(Exception, match=r"no such table|does not exist"):
        Country.objects.count()


def test_one_address_behind_two_aliases_stays_one_database(own: OwnDatabases, real: str) -> None:
    with own.active():
        configure(database=real)
        configure(database=real, alias="again")
        configure(database="sqlite:///other.sqlite3", alias="other")
        create_all(Country)
        create_all(Country, using="other")
        Country.objects.create(name="x")
        assert Country.objects.using("again").count() == 1
        assert Country.objects.using("other").count() == 0


def test_a_database_in_memory_keeps_its_tables_for_the_run(own: OwnDatabases) -> None:
    configure("sqlite", ":memory:")
    configure("sqlite", ":memory:", alias="other")
    with own.active():
        create_all(Country)
        create_all(Country, using="other")
        Country.objects.create(name="x")
        database_for("default").close()  # as an application does that ends
        assert Country.objects.count() == 1
        assert Country.objects.using("other").count() == 0


def test_a_database_that_is_named_is_used_as_it_is(tmp_path: Path, real: str) -> None:
    own = OwnDatabases(tmp_path, named={"default": f"sqlite:///{tmp_path}/named.sqlite3"})
    with own.active():
        configure(database=real)
        create_all(Country)
        Country.objects.create(name="kept")
    own.close()
    configure("sqlite", tmp_path / "named.sqlite3")
    assert Country.objects.count() == 1


PREPARING = """
import sys
from pathlib import Path
from treefold_orm import Model, configure, fields
from treefold_orm.testing import OwnDatabases, sandbox

class Country(Model):
    name = fields.CharField(max_length=20)

own = OwnDatabases(Path(sys.argv[2]))
with own.active():
    configure(database=sys.argv[1])
    own.prepare(Path(sys.argv[2]))
    with sandbox():
        Country.objects.create(name="x")
    own.prepare(Path(sys.argv[2]))
    print(Country.objects.count())
own.close()
"""


def test_tables_are_made_once_for_the_models_there_are(real: str, tmp_path: Path) -> None:
    # a process of its own: prepare() takes every model there is, and other tests leave faulty ones
    command = [sys.executable, "-c", PREPARING, real, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_a_sandbox_is_left_alone(own: OwnDatabases, real: str) -> None:
    with own.active():
        configure(database=real)
        create_all(Country)
        with sandbox(), own.active():
            Country.objects.create(name="inside")
            assert Country.objects.count() == 1
        assert Country.objects.count() == 0


# -- PostgreSQL -----------------------------------------------------------------------------------


def test_its_name_says_whose_it_is_and_it_is_dropped(postgres_dsn: str, tmp_path: Path) -> None:
    name = f"shop_{secrets.token_hex(4)}"
    address = f"{postgres_dsn.rpartition('/')[0]}/{name}"  # it need not even exist
    own = OwnDatabases(tmp_path, worker="gw1")
    with own.active():
        configure(database=address)
        create_all(Country)
        assert databases_like(postgres_dsn, f"test_{name}") == [f"test_{name}_gw1"]
    own.close()
    assert databases_like(postgres_dsn, f"test_{name}") == []


def test_runs_side_by_side_have_one_each(postgres_dsn: str, tmp_path: Path) -> None:
    name = f"shop_{secrets.token_hex(4)}"
    address = f"{postgres_dsn.rpartition('/')[0]}/{name}"
    one, two = OwnDatabases(tmp_path), OwnDatabases(tmp_path)
    for own in (one, two):
        with own.active():
            configure(database=address)
            create_all(Country)
    assert databases_like(postgres_dsn, f"test_{name}") == [f"test_{name}", f"test_{name}_2"]
    one.close()
    assert databases_like(postgres_dsn, f"test_{name}") == [f"test_{name}_2"]
    two.close()
    assert databases_like(postgres_dsn, f"test_{name}") == []


def test_what_a_killed_run_has_left_is_made_new(postgres_dsn: str, tmp_path: Path) -> None:
    name = f"shop_{secrets.token_hex(4)}"
    orm_postgres.ask(postgres_dsn, f'CREATE DATABASE "test_{name}"')
    left = f"{postgres_dsn.rpartition('/')[0]}/test_{name}"
    orm_postgres.ask(left, "CREATE TABLE country (old int)")
    own = OwnDatabases(tmp_path)
    with own.active():
        configure(database=f"{postgres_dsn.rpartition('/')[0]}/{name}")
        create_all(Country)
        Country.objects.create(name="new")
    own.close()
    assert databases_like(postgres_dsn, f"test_{name}") == []


def test_a_kept_database_is_used_again_with_its_rows(postgres_dsn: str, tmp_path: Path) -> None:
    name = f"shop_{secrets.token_hex(4)}"
    address = f"{postgres_dsn.rpartition('/')[0]}/{name}"
    counts: list[int] = []
    for reuse in (True, True, False):
        own = OwnDatabases(tmp_path, reuse=reuse)
        with own.active():
            configure(database=address)
            create_all(Country)
            Country.objects.create(name=f"of run {len(counts)}")
            counts.append(Country.objects.count())
        own.close()
        kept = [f"test_{name}"] if reuse else []
        assert databases_like(postgres_dsn, f"test_{name}") == kept
    assert counts == [1, 2, 1]


def test_a_user_who_may_make_none_is_told_the_ways_out(postgres_dsn: str, tmp_path: Path) -> None:
    role = f"poor_{secrets.token_hex(4)}"
    orm_postgres.ask(postgres_dsn, f"CREATE ROLE {role} LOGIN PASSWORD 'hunter2'")
    address = postgres_dsn.replace("postgres@", f"{role}:hunter2@")
    own = OwnDatabases(tmp_path)
    try:
        with own.active(), pytest.raises(ConfigurationError) as refused:
            configure(database=address)
    finally:
        own.close()
        orm_postgres.ask(postgres_dsn, f"DROP ROLE {role}")
    name = postgres_dsn.rpartition("/")[2]
    assert str(refused.value).startswith(
        f"Tests use a database of their own, and 'test_{name}' cannot be made: "
    )
    assert "grant CREATEDB to its user, or name one for tests: [test.databases]" in str(
        refused.value
    )
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("postgresql://ann:p%40ss@host:5433/shop?sslmode=require", "test_shop"),
        ("postgresql:///shop?host=/run/postgresql", "test_shop"),
        ("postgresql://host/?dbname=shop", "test_shop"),
        ("postgresql://host/a%2Fb", "test_a/b"),
    ],
)
def test_only_the_name_of_an_address_changes(address: str, name: str) -> None:
    made = make_unregistered_database("default", address)
    assert isinstance(made, PostgresDatabase)
    moved = made.with_database(f"test_{made.database}")
    assert moved.database == name
    assert moved.place.partition(", ")[0] == made.place.partition(", ")[0]
    assert ("ann:p%40ss@" in str(moved._connect["dsn"])) is ("ann" in address)


def test_a_long_name_stays_its_own_within_63_bytes() -> None:
    names = [_shorten_database_name(f"test_{'ü' * 40}{n}") for n in range(3)]
    assert len(set(names)) == 3
    assert all(len(name.encode()) <= LONGEST_NAME for name in names)
    assert _shorten_database_name("test_shop") == "test_shop"


# -- the plugin -----------------------------------------------------------------------------------


def test_the_plugin_replaces_the_database_of_models_without_an_application(
    real: str, tmp_path: Path
) -> None:
    (tmp_path / "models_of_mine.py").write_text(
        f"""
from treefold_orm import Model, configure, fields

class Thing(Model):
    name = fields.CharField(max_length=10)

configure(database={real!r})
"""
    )
    (tmp_path / "test_it.py").write_text(
        """
import pytest
from models_of_mine import Thing

@pytest.mark.parametrize("turn", [1, 2])
def test_starts_empty(db, turn):
    assert Thing.objects.count() == 0
    Thing.objects.create(name="x")

def test_what_is_written_without_the_fixture_stays_off_the_real_one_as_well():
    Thing.objects.create(name="x")
"""
    )
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert "3 passed" in done.stdout, done.stdout + done.stderr
    configure(database=real)
    with pytest.raises(Exception, match=r"no such table|does not exist"):
        Country.objects.count()


def test_each_worker_of_a_parallel_run_has_its_own(postgres_dsn: str, tmp_path: Path) -> None:
    name = f"shop_{secrets.token_hex(4)}"
    address = f"{postgres_dsn.rpartition('/')[0]}/{name}"  # it need not even exist
    (tmp_path / "test_it.py").write_text(
        f"""
import pytest
from treefold_orm import Model, configure, fields

class Thing(Model):
    name = fields.CharField(max_length=10)

configure(database={address!r})

@pytest.mark.parametrize("turn", range(4))
def test_starts_empty(db, turn):
    assert Thing.objects.count() == 0
    Thing.objects.create(name="x")
"""
    )
    words = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--reuse-db", "-W", "error"]
    outer = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    done = subprocess.run(
        words, cwd=tmp_path, env=outer, capture_output=True, text=True, check=False
    )
    kept = databases_like(postgres_dsn, f"test_{name}")
    for each in kept:
        orm_postgres.ask(postgres_dsn, f'DROP DATABASE "{each}"')
    assert "4 passed" in done.stdout, done.stdout + done.stderr
    assert kept == [f"test_{name}_gw0", f"test_{name}_gw1"]
