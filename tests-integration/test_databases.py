"""The ORM inside an application: from the setting to the last connection (issue 4, rulings)."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import orm_postgres
import pytest
from serving import PATIENCE, NewDatabase, Served, StartFailed, start, write_tree

from treefold import Application, Settings
from treefold.orm import aliases, configure
from treefold.testing import TestClient
from treefold_http import BootError

MODELS = """
from treefold.orm import Model, fields

class Author(Model):
    name = fields.CharField(max_length=20)
    is_admin = fields.BooleanField(default=False)

class Book(Model):
    title = fields.CharField(max_length=20)
    author = fields.ForeignKey(Author, related_name="books")
"""
HOOKS = """
from Models.shop import Author, Book
from treefold.orm import acreate_all

async def fill():
    await acreate_all()
    if not await Author.objects.aexists():
        for number in range(4):
            author = await Author.objects.acreate(name=f"a{number}")
            await Book.objects.acreate(title=f"b{number}", author=author)

on_startup = [fill]
"""
TREE = {
    "Models/__init__.py": "",
    "Models/shop.py": MODELS,
    "hooks.py": HOOKS,
    "Api/v1/Slow/Get.py": """
        from Models.shop import Author, Book

        async def handler(request):
            names = []
            for book in await Book.objects.all():
                author = await Author.objects.aget(id=book.author_id)
                names.append(author.name)
            return names
        """,
    "Api/v1/Slow/Post.py": """
        from Models.shop import Author, Book

        def handler():
            return [Author.objects.get(id=book.author_id).name for book in Book.objects.all()]
        """,
    "Api/v1/Quick/Get.py": """
        from Models.shop import Book

        async def handler(request):
            return [book.author.name for book in await Book.objects.select_related("author")]
        """,
    "Api/v1/Author/Get.py": """
        from Models.shop import Author

        async def handler(request):
            return [author.name for author in await Author.objects.filter(**request.query)]
        """,
    "Api/v1/Author/Post.py": """
        from Models.shop import Author

        async def handler(request):
            author = await Author.objects.acreate(**await request.json())
            return author.id
        """,
    "Api/v1/Author/Put.py": """
        from Models.shop import Author

        async def handler(request):
            author = Author()
            author.assign(await request.json(), fields=["name"])
            await author.asave()
            return {"id": author.id, "admin": author.is_admin}
        """,
    "Api/v1/Author/Patch.py": """
        from Models.shop import Author

        async def handler(request):
            return await Author.objects.filter(id=1).aupdate(**await request.form())
        """,
    "Api/v1/Whole/Post.py": """
        from Models.shop import Author
        from treefold import Depends
        from treefold.orm import transaction

        def whole():
            with transaction():
                yield

        async def handler(n: int, _: None = Depends(whole)):
            assert transaction.active()
            await Author.objects.acreate(name="whole")
            return {"n": 1 // n}
        """,
    "Api/v1/Whole/Put.py": """
        from Models.shop import Author
        from treefold import Depends
        from treefold.orm import transaction

        async def whole():
            async with transaction():
                yield

        def handler(n: int, _: None = Depends(whole)):
            assert transaction.active()
            Author.objects.create(name="whole")
            return {"n": 1 // n}
        """,
    "Api/v1/Whole/Get.py": """
        from Models.shop import Author
        from treefold.orm import transaction

        async def handler(request):
            assert not transaction.active()
            return [await Author.objects.filter(name="whole").acount()]
        """,
    "Api/v1/Rows/Get.py": """
        from Models.shop import Author
        from treefold import StreamingResponse

        def rows():
            for author in Author.objects.order_by("id").iterator(2):
                yield author.name

        def handler():
            return StreamingResponse(rows())
        """,
}


@pytest.fixture(scope="module")
def shop(
    kind: str, new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    root = write_tree(tmp_path_factory.mktemp("shop"), TREE)
    with new_database() as database:
        served = start(kind, root, dev=True, database=database)
        yield served
        served.stop()


@pytest.mark.parametrize(
    ("method", "place"), [("GET", "Api/v1/Slow/Get.py:7"), ("POST", "Api/v1/Slow/Post.py:5")]
)
def test_a_query_in_a_loop_is_named_with_the_line_that_makes_it(
    shop: Served, method: str, place: str
) -> None:
    answer = shop.request(method, "/v1/slow")
    assert answer.json() == ["a0", "a1", "a2", "a3"]
    (line,) = shop.wait_for(
        lambda lines: [t for t in lines if "Likely N+1" in t and f"id={answer.id}" in t]
    )
    assert line.startswith("[WARNING] Likely N+1: 4 times the same query in one request, from ")
    assert f"from {place}; load it at once" in line


def test_the_request_line_stays_what_it_is_and_good_code_is_not_blamed(shop: Served) -> None:
    answer = shop.get("/v1/quick")
    assert answer.json() == ["a0", "a1", "a2", "a3"]
    assert shop.line(answer).endswith(f"id={answer.id} payload=-")
    assert shop.block(answer).count("\n") == 0


@pytest.mark.parametrize(
    ("method", "target", "body", "media_type"),
    [
        ("GET", "/v1/author?is_admin=true", b"", ""),
        ("POST", "/v1/author", b'{"name":"x","is_admin":true}', "application/json"),
        ("PATCH", "/v1/author", b"is_admin=true", "application/x-www-form-urlencoded"),
    ],
)
def test_names_that_a_client_chose_are_refused_with_the_way_out(
    shop: Served, method: str, target: str, body: bytes, media_type: str
) -> None:
    headers = [("Content-Type", media_type)] if media_type else []
    answer = shop.request(method, target, headers=headers, body=body)
    assert answer.status == 500
    assert "comes from a request and cannot name a field or lookup" in answer.json()["detail"]
    assert "use FilterSet or assign(fields=[...])" in answer.json()["detail"]


def test_assign_takes_what_is_listed_and_nothing_else(shop: Served) -> None:
    fields = [("Content-Type", "application/json")]
    body = b'{"name":"eve","is_admin":true}'
    assert shop.request("PUT", "/v1/author", headers=fields, body=body).json()["admin"] is False


def test_a_plain_generator_streams_rows_from_a_cursor(shop: Served) -> None:
    assert shop.get("/v1/rows").body.startswith(b"a0a1a2a3")


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_dependency_holds_a_transaction_around_a_handler(shop: Served, method: str) -> None:
    (before,) = shop.get("/v1/whole").json()
    assert shop.request(method, "/v1/whole?n=0").status == 500
    assert shop.get("/v1/whole").json() == [before]
    made = shop.request(method, "/v1/whole?n=1")
    assert made.status == 200
    shop.line(made)  # written after what follows the `yield`, which follows the answer
    assert shop.get("/v1/whole").json() == [before + 1]


# -- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("mysql://ann:hunter2@host/db", "has the scheme 'mysql', which is not known"),
        ("postgresql://ann:hunter2@host:x/db", "percent-encode '/', ':', '@' and '#'"),
        ("sqlite:///no/such/folder/db.sqlite3", "which is not a folder; make it first"),
    ],
)
def test_a_wrong_address_stops_the_start_and_shows_no_password(
    kind: str, tmp_path: Path, address: str, message: str
) -> None:
    write_tree(tmp_path, {"Api/v1/Get.py": "async def handler(request): ..."})
    with pytest.raises(StartFailed) as failed:
        start(kind, tmp_path, database=address).stop()
    assert f"Database 'default' {message}" in failed.value.stderr or message in failed.value.stderr
    assert "hunter2" not in failed.value.stderr


def command(root: Path, *words: str, **environment: str) -> str:
    """Run Python in a project and give what it prints."""
    given = {k: v for k, v in os.environ.items() if not k.startswith("TREEFOLD_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", *words],
        cwd=root,
        env=given | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


SHOWN = """
from treefold import Application
from treefold.orm import aliases
from treefold_orm._runtime.connections import database_for
Application(".").boot()
print([(alias, database_for(alias).name) for alias in aliases()])
"""


@pytest.mark.parametrize(
    "files",
    [
        {"treefold.toml": '[databases]\ndefault = "sqlite:///a.db"\nold = "sqlite:///b.db"\n'},
        {
            "pyproject.toml": "[tool.treefold.databases]\n"
            'default = "sqlite:///a.db"\nold = "sqlite:///b.db"\n'
        },
    ],
)
def test_the_setting_is_read_from_either_file_and_the_environment_wins(
    tmp_path: Path, files: dict[str, str]
) -> None:
    root = write_tree(tmp_path, files)
    assert command(root, "-c", SHOWN) == "[('default', 'sqlite'), ('old', 'sqlite')]\n"
    address = "postgresql://localhost/x"
    shown = command(root, "-c", SHOWN, TREEFOLD_DATABASE_URL=address)
    assert shown == "[('default', 'postgres'), ('old', 'sqlite')]\n"


def test_an_explicit_configure_in_the_project_wins(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path,
        {
            "Models/shop.py": "from treefold.orm import configure\nconfigure('sqlite', 'mine.db')",
            "treefold.toml": '[databases]\ndefault = "postgresql://localhost/x"\n',
        },
    )
    assert command(root, "-c", SHOWN) == "[('default', 'sqlite')]\n"


# -- several applications, and their end ----------------------------------------------------------


def application(root: Path, database: Path) -> Application:
    """An application of `TREE` on a SQLite file."""
    given = Settings(databases={"default": f"sqlite:///{database}"})
    return Application(write_tree(root, TREE), settings=given)


def test_two_applications_one_after_the_other_keep_to_their_own(tmp_path: Path) -> None:
    for name in ("one", "two"):
        app = application(tmp_path / name, tmp_path / f"{name}.sqlite3")
        with TestClient(app) as client:
            made = client.put("/v1/author", json={"name": name})
            assert made.json()["id"] == 5
            assert client.get("/v1/quick").json() == ["a0", "a1", "a2", "a3"]
        assert not list(tmp_path.glob("*.sqlite3-wal"))  # the last connection takes it along


def test_errors_of_the_database_have_the_declared_format(tmp_path: Path) -> None:
    format = "def error_format(request, error) -> dict[str, int]: return {'code': error.status}\n"
    post = """
        from Models.shop import Author
        async def handler(name: str): await Author.objects.acreate(name=name)
    """
    app = application(tmp_path / "shop", tmp_path / "db")
    write_tree(app.root, {"hooks.py": f"{HOOKS}\n{format}", "Api/v1/Author/Post.py": post})
    with TestClient(app) as client:
        refused = client.post("/v1/author", params={"name": "x" * 21})

    assert (refused.status_code, refused.json()) == (422, {"code": 422})


def test_a_value_that_is_taken_is_409_unless_the_handler_answers_it(tmp_path: Path) -> None:
    models = MODELS.replace(
        "max_length=20)\n    is_admin", "max_length=20, unique=True)\n    is_admin"
    )
    post = "from Models.shop import Author\n\nasync def handler(request):\n"
    post += "    await Author.objects.acreate(name='a1')\n"
    own = "async def handler(request):\n    try:\n        await Author.objects.acreate(name='a1')\n"
    own += "    except UniqueViolation:\n        return 'taken', 400\n"
    head = "from Models.shop import Author\nfrom treefold.orm import UniqueViolation\n\n"
    tree = TREE | {"Models/shop.py": models, "Api/v1/New/Post.py": post}
    tree["Api/v1/Own/Post.py"] = head + own
    root = write_tree(tmp_path, tree)
    settings = Settings(databases={"default": f"sqlite:///{tmp_path}/taken.sqlite3"})
    with TestClient(Application(root, settings=settings)) as client:
        refused = client.post("/v1/new")
        handled = client.post("/v1/own")
    assert (refused.status_code, refused.json()["detail"]) == (409, "name: exists already")
    assert "a1" not in str(refused.json() | {"request_id": ""})
    assert (handled.status_code, handled.text) == (400, "taken")


def test_what_full_clean_finds_is_told_by_field(tmp_path: Path) -> None:
    put = """
        from Models.shop import Author
        async def handler(name: str): Author(name=name).full_clean()
    """
    app = application(tmp_path / "shop", tmp_path / "db")
    write_tree(app.root, {"Api/v1/Author/Patch.py": put})
    with TestClient(app) as client:
        refused = client.patch("/v1/author", params={"name": "x" * 21})

    assert refused.status_code == 422
    (entry,) = refused.json()["errors"]
    assert entry["loc"] == ["name"]
    assert refused.json()["detail"] == f"name: {entry['msg']}"


def test_a_start_that_fails_leaves_no_connection(tmp_path: Path) -> None:
    app = application(tmp_path / "shop", tmp_path / "shop.sqlite3")
    hooks = tmp_path / "shop" / "hooks.py"
    hooks.write_text(f"{HOOKS}\ndef fail(): raise LookupError\non_startup.append(fail)\n")
    with pytest.raises(Exception, match="Startup hook fail failed"), TestClient(app):
        pass
    assert (tmp_path / "shop.sqlite3").exists()
    assert not list(tmp_path.glob("*.sqlite3-wal"))


@pytest.mark.parametrize("fails", [False, True])
def test_the_server_has_no_connection_of_an_application_that_has_ended(
    tmp_path: Path, postgres_server: str, fails: bool
) -> None:
    root = write_tree(tmp_path, TREE)
    if fails:
        (root / "hooks.py").write_text(f"{HOOKS}\ndef fail(): 1 / 0\non_startup.append(fail)\n")
    with orm_postgres.database(postgres_server) as address:
        name = address.rpartition("/")[2]
        count = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'"
        client = TestClient(Application(root, settings=Settings(databases={"default": address})))
        with suppress(BootError), client:
            client.post("/v1/slow")  # the sync half, from a worker thread
            assert orm_postgres.ask(postgres_server, count) > 0
        deadline = time.monotonic() + PATIENCE  # noticed soon, but not in the same moment
        while (left := orm_postgres.ask(postgres_server, count)) and time.monotonic() < deadline:
            continue
        assert left == 0


# -- in tests of users ----------------------------------------------------------------------------

USER_TESTS = """
import asyncio
import pytest
from treefold.orm import transaction

@pytest.mark.parametrize("turn", [1, 2])
def test_what_handlers_write_is_gone_after_the_test(db, client, turn):
    from Models.shop import Author
    before = Author.objects.count()
    assert before == 4  # of the startup hook, and nothing of the turn before
    assert client.put("/v1/author", json={"name": "eve"}).status_code == 200
    assert Author.objects.filter(name="eve").count() == 1
    assert client.get("/v1/quick").json() == ["a0", "a1", "a2", "a3"]
    assert client.get("/v1/rows").text.endswith("eve")

def test_the_order_of_fixtures_does_not_matter(client, db):
    from Models.shop import Author
    client.put("/v1/author", json={"name": "eve"})
    assert Author.objects.filter(name="eve").exists()

@pytest.mark.parametrize("turn", [1, 2])
async def test_an_async_test_too(db, async_client, turn):
    from Models.shop import Author
    assert (await async_client.put("/v1/author", json={"name": "eve"})).status_code == 200
    assert (await async_client.post("/v1/slow")).json() == ["a0", "a1", "a2", "a3"]
    assert await Author.objects.filter(name="eve").acount() == 1
    async with transaction():
        await Author.objects.filter(name="eve").adelete()
    assert await Author.objects.acount() == 4
"""


def test_the_fixture_db_undoes_each_test_of_a_project(
    new_database: NewDatabase, tmp_path: Path
) -> None:
    root = write_tree(tmp_path, {**TREE, "Tests/test_shop.py": USER_TESTS})
    with new_database() as address:
        assert "5 passed" in command(root, *PYTEST, TREEFOLD_DATABASE_URL=address)
        assert "5 passed" in command(root, *PYTEST, TREEFOLD_DATABASE_URL=address)
        assert tables_of(address) == []


PLAIN = ["-p", "no:cacheprovider", "-p", "no:valkey", "-p", "no:schemathesis"]
"""Without plugins that are there for the tests of this repository; schemathesis takes a second."""
PYTEST = ["-m", "pytest", "-q", *PLAIN]


def tables_of(address: str) -> list[str]:
    """The tables of a database; a file that does not exist has none."""
    if address.startswith("sqlite"):
        path = Path(address.removeprefix("sqlite:///"))
        if not path.exists():
            return []
        with closing(sqlite3.connect(path)) as raw:
            found = raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            return sorted(name for (name,) in found if not name.startswith("sqlite_"))
    sql = "SELECT coalesce(string_agg(tablename, ' ' ORDER BY tablename), '') FROM pg_tables"
    names: str = orm_postgres.ask(address, f"{sql} WHERE schemaname = 'public'")
    return names.split()


PREPARED = """
def test_tables_are_there_without_a_hook(client):
    assert client.get("/v1/count").json() == {"count": 0}

def test_rows_without_the_fixture_db_stay_in_the_database_of_the_run(client):
    assert client.post("/v1/count").json() == {"count": 1}

def test_the_database_is_the_same_in_the_whole_run(client):
    assert client.get("/v1/count").json() == {"count": 1}

def test_an_explicit_configure_is_replaced_as_well(client, db):
    from Models.logs import Entry
    Entry.objects.using("logs").create(text="x")
    assert Entry.objects.using("logs").count() == 1
"""
COUNTED = {
    "Models/shop.py": MODELS,
    "Models/logs.py": """
        import os
        from treefold.orm import Model, configure, fields

        configure(database=os.environ["LOGS"], alias="logs")

        class Entry(Model):
            text = fields.TextField()
        """,
    "Api/v1/Count/Get.py": """
        from Models.shop import Author

        async def handler(request):
            return {"count": await Author.objects.acount()}
        """,
    "Api/v1/Count/Post.py": """
        from Models.shop import Author

        async def handler(request):
            await Author.objects.acreate(name="kept")
            return {"count": await Author.objects.acount()}
        """,
    "Tests/test_count.py": PREPARED,
}


def test_tests_of_a_project_never_touch_its_databases(
    new_database: NewDatabase, tmp_path: Path
) -> None:
    root = write_tree(tmp_path, COUNTED)
    with new_database() as address, new_database() as logs:
        for _ in range(2):  # rows of one run are not there in the next
            said = command(root, *PYTEST, TREEFOLD_DATABASE_URL=address, LOGS=logs)
            assert "4 passed" in said
        assert tables_of(address) == tables_of(logs) == []
        if address.startswith("postgres"):
            left = "SELECT count(*) FROM pg_database WHERE datname LIKE 'test_"
            assert orm_postgres.ask(address, f"{left}{address.rpartition('/')[2]}%'") == 0


WITHOUT_FIXTURES = """
from treefold import Application, TestClient

def test_an_application_of_my_own_counts():
    with TestClient(Application("."), raise_app_errors=True) as client:
        assert client.post("/v1/count").json() == {"count": 1}

def test_models_alone_write():
    from Models.shop import Author
    Author.objects.create(name="x")
    assert Author.objects.count() == 2
"""


def test_tests_without_our_fixtures_keep_off_the_database_as_well(
    new_database: NewDatabase, tmp_path: Path
) -> None:
    root = write_tree(tmp_path, {**COUNTED, "Tests/test_count.py": WITHOUT_FIXTURES})
    with new_database() as address:
        said = command(root, *PYTEST, TREEFOLD_DATABASE_URL=address, LOGS="sqlite://:memory:")
        assert "2 passed" in said
        assert tables_of(address) == []


def test_the_option_reuse_db_keeps_the_database_of_the_run(
    postgres_server: str, tmp_path: Path
) -> None:
    root = write_tree(tmp_path, {**COUNTED, "Tests/test_count.py": WITHOUT_FIXTURES})
    with orm_postgres.database(postgres_server) as address:
        variables = {"TREEFOLD_DATABASE_URL": address, "LOGS": "sqlite://:memory:"}
        kept = f"{address.rpartition('/')[0]}/test_{address.rpartition('/')[2]}"
        assert "2 passed" in command(root, *PYTEST, "--reuse-db", **variables)
        try:
            assert orm_postgres.ask(kept, "SELECT count(*) FROM author") == 2
            assert tables_of(address) == []
        finally:
            orm_postgres.ask(address, f'DROP DATABASE "{kept.rpartition("/")[2]}"')


@pytest.mark.parametrize("said", ["settings", "environment", "option"])
def test_a_database_that_is_named_for_tests_is_used_and_kept(
    new_database: NewDatabase, tmp_path: Path, said: str
) -> None:
    root = write_tree(tmp_path, COUNTED)
    with new_database() as address, new_database() as named:
        variables = {"TREEFOLD_DATABASE_URL": address, "LOGS": "sqlite://:memory:"}
        words = PYTEST
        if said == "settings":
            (root / "treefold.toml").write_text(f'[test.databases]\ndefault = "{named}"\n')
        elif said == "environment":
            variables["TREEFOLD_TEST_DATABASE_URL"] = named
        else:
            words = ["-m", "treefold", "test", "--database", named, *PYTEST[2:]]
        assert "4 passed" in command(root, *words, **variables)
        assert tables_of(address) == []
        assert tables_of(named) == ["author", "book", "entry"]


def test_the_umbrella_gives_the_names_of_the_orm() -> None:
    import treefold.orm
    import treefold_orm

    assert vars(treefold.orm)["__all__"] == vars(treefold_orm)["__all__"]
    assert (treefold.orm.configure, treefold.orm.aliases) == (configure, aliases)
