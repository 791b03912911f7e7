"""Migrations in a project: from a changed model to a migrated database, as a developer does it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from forked_commands import ForkServer
from serving import NewDatabase, Process, write_tree
from test_databases import PLAIN, PYTEST, tables_of

MODELS = """
from treefold.orm import Model, fields

class Author(Model):
    name = fields.CharField(max_length=80)

class Book(Model):
    title = fields.CharField(max_length=200)
    author = fields.ForeignKey(Author, related_name="books")
"""
TREE = {
    "Models/__init__.py": "",
    "Models/shop.py": MODELS,
    "Api/v1/Book/Get.py": """
        from Models.shop import Book

        async def handler(request):
            return [vars(book).get("pages", 0) async for book in Book.objects.aiterator()]
        """,
    "Api/v1/Book/Post.py": """
        from Models.shop import Author, Book

        async def handler(request):
            author = await Author.objects.acreate(name="Le Guin")
            await Book.objects.acreate(title="The Dispossessed", author=author)
            return {"books": await Book.objects.acount()}
        """,
}
PAGES = MODELS.replace("title =", "pages = fields.IntegerField(null=True)\n    title =")


class Project:
    """A project on the disk with a database, and the command line over it."""

    def __init__(self, root: Path, address: str, commands: ForkServer) -> None:
        self.root = root
        self.address = address
        self.commands = commands
        plain = {k: v for k, v in os.environ.items() if not k.startswith("TREEFOLD_")}
        self.environment = plain | {"TREEFOLD_DATABASE_URL": address}

    def treefold(self, *words: str, code: int = 0, **variables: str) -> str:
        """Run a command; return what it prints, errors after the rest."""
        env = self.environment | variables
        done = self.commands.run(words, cwd=self.root, env=env, strict=True)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def write(self, files: Mapping[str, str]) -> None:
        write_tree(self.root, files)

    def serve(self, *, dev: bool = True) -> Process:
        return Process(self.root, "httptools", dev=dev, default_version=None, database=self.address)


@pytest.fixture
def project(
    new_database: NewDatabase, tmp_path: Path, fork_server: ForkServer
) -> Iterator[Project]:
    with new_database() as address:
        yield Project(write_tree(tmp_path / "shop", TREE), address, fork_server)


def test_from_a_model_to_a_row_and_to_a_new_field(project: Project) -> None:
    said = project.treefold("makemigrations")
    assert said.splitlines()[0] == "created: migrations/0001_initial.py"
    assert "create table book" in said
    assert project.treefold("migrate").startswith("0001_initial: ")
    assert tables_of(project.address) >= ["author", "book"]
    server = project.serve()
    try:
        assert server.request("POST", "/v1/book").json() == {"books": 1}
        project.write({"Models/shop.py": PAGES})
        line = server.wait_for(lambda lines: [t for t in lines if "pending: no migration" in t])
        assert line[0].endswith(
            "pending: no migration yet: Book"
            " (run 'treefold makemigrations', or start with 'treefold dev --migrate')"
        )
        problem = server.get("/v1/book").json()
        assert "No migration brings it yet: run 'treefold makemigrations'" in problem["detail"]
        project.treefold("makemigrations")
        server.wait_for(lambda lines: [t for t in lines if "pending: not applied: 0002_" in t])
        problem = server.get("/v1/book").json()
        assert re.search(r"\nMigration 0002_\w+ brings it and is not applied", problem["detail"])
        project.treefold("migrate")
        assert server.get("/v1/book").json() == [None]
    finally:
        written = server.stop()
    assert "Migration 0002_" in written  # in the log too, below the error


def test_dev_migrate_applies_at_the_start_and_after_a_change(project: Project) -> None:
    project.treefold("makemigrations")
    words = ["dev", "--migrate", "--port", "0", "--app-dir", str(project.root)]
    server = subprocess.Popen(
        [sys.executable, "-m", "treefold", *words],
        env=project.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert server.stdout is not None
        seen = iter(server.stdout.readline, "")
        assert any("applied 0001_initial" in line for line in seen)
        assert any("watching " in line for line in seen)
        project.write({"Models/shop.py": PAGES})
        project.treefold("makemigrations", "pages")
        assert any("applied 0002_pages" in line for line in seen)
    finally:
        server.terminate()
        server.communicate(timeout=20)
    assert project.treefold("showmigrations").split() == [
        *("[x]", "0001_initial"),
        *("[x]", "0002_pages"),
    ]


def test_what_is_pending_is_said_where_it_is_asked(project: Project) -> None:
    none = "no migration yet: Author, Book"
    found = project.treefold("check", "--strict", code=1)
    assert f"[lint] {none} (treefold makemigrations)" in found
    server = project.serve()
    try:
        line = server.wait_for(lambda lines: [text for text in lines if "pending: " in text])
    finally:
        server.stop()
    assert line[0].endswith(
        f"pending: {none} (run 'treefold makemigrations', or start with 'treefold dev --migrate')"
    )
    project.treefold("makemigrations")
    project.treefold("check")
    found = project.treefold("check", "--strict", code=1)
    assert "[lint] not applied: 0001_initial (treefold migrate)" in found
    report = json.loads(project.treefold("doctor", "--json"))
    pending = [f["text"] for f in report["findings"] if f["topic"] == "pending"]
    assert pending == ["not applied: 0001_initial"]
    refused = project.treefold("serve", "--require-migrated", "--port", "0", code=1)
    assert "pending: not applied: 0001_initial (treefold migrate)" in refused
    assert tables_of(project.address) == []
    project.treefold("migrate")
    project.treefold("check", "--strict")
    current = project.treefold("makemigrations", "--check")
    assert current == "Models and migrations agree\n"


def test_both_releases_start_between_the_phases(project: Project) -> None:
    project.treefold("makemigrations")
    project.treefold("migrate")
    new = MODELS.replace("title =", "pages = fields.IntegerField(default=0)\n    title =")
    project.write({"Models/shop.py": new})
    project.treefold("makemigrations", "pages")
    refused = project.treefold("serve", "--require-migrated", "--port", "0", code=1)
    assert "pending: not applied: 0002_pages (treefold migrate)" in refused
    assert "Expanded; run `migrate`" in project.treefold("migrate", "--phase", "expand")
    expanded = "0002_pages: expanded. `migrate` applies the rest once the release before is gone"
    assert f"[~] {expanded}" in project.treefold("showmigrations")
    assert expanded.replace(":", " is") in project.treefold("migrations", "drift")
    assert expanded.replace(":", " is") in project.treefold("migrations", "lint", code=1)
    started(project)
    report = json.loads(project.treefold("doctor", "--json"))
    assert [f for f in report["findings"] if f["topic"] == "pending"] == []
    file = project.root / "migrations" / "0002_pages.py"
    text = file.read_text()
    file.unlink()
    project.write({"Models/shop.py": MODELS})
    started(project)  # the release before, which has neither the file nor the field
    assert project.treefold("migrate") == "Nothing to apply\n"
    project.write({"Models/shop.py": new})
    file.write_text(text)
    assert project.treefold("migrate").startswith("0002_pages (contract): ")
    assert "[x] 0002_pages" in project.treefold("showmigrations")


def started(project: Project) -> None:
    """Start the release with `--require-migrated` and stop it."""
    server = subprocess.Popen(
        [sys.executable, "-m", "treefold", "serve", "--require-migrated", "--port", "0"],
        cwd=project.root,
        env=project.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert server.stdout is not None
        lines: list[str] = []
        for line in server.stdout:
            lines.append(line)
            if "serving on" in line:
                break
        else:
            raise AssertionError("".join(lines))
    finally:
        server.terminate()
        server.communicate(timeout=20)


def test_asking_makes_no_database(project: Project) -> None:
    if project.address.startswith("postgres"):
        project.treefold("makemigrations")
        return
    project.treefold("makemigrations")
    project.treefold("check", "--strict", code=1)
    project.treefold("doctor")
    assert not Path(project.address.removeprefix("sqlite:///")).exists()


def test_serve_never_migrates(project: Project) -> None:
    project.treefold("makemigrations")
    server = project.serve(dev=False)
    assert server.get("/v1/book").status == 500
    server.stop()
    assert "book" not in tables_of(project.address)


TESTS = """
def test_tables_come_from_the_migrations(client):
    assert client.post("/v1/book").json() == {"books": 1}
    from treefold.orm import raw
"""


def test_tests_run_on_a_database_that_the_migrations_made(project: Project) -> None:
    project.treefold("makemigrations")
    project.write(
        {
            "Tests/test_shop.py": """
                def test_a_book_is_taken(db, client):
                    assert client.post("/v1/book").json() == {"books": 1}

                def test_nothing_of_it_is_left(db, client):
                    assert client.get("/v1/book").json() == []
                """
        }
    )
    assert "2 passed" in project.treefold("test", *PLAIN)
    project.write({"Models/shop.py": PAGES})  # a field that no migration brings
    failed = project.treefold("test", *PLAIN, code=1)
    assert "No migration brings it yet" in failed
    assert tables_of(project.address) == []


@pytest.mark.parametrize("migrated", [True, False])
def test_each_database_of_a_test_run_has_the_tables_of_its_models(
    project: Project, migrated: bool
) -> None:
    project.write(
        {
            "treefold.toml": """
                [databases]
                other = "sqlite:///other.sqlite3"
                """,
            "Models/visits.py": """
                from treefold.orm import Model, fields

                class Visit(Model):
                    path = fields.CharField(max_length=20)

                    class Meta:
                        database = "other"
                """,
            "Tests/test_two.py": """
                import pytest
                from Models.shop import Author
                from Models.visits import Visit
                from treefold.orm import DatabaseError

                def test_each_has_its_own(client, db):
                    Visit.objects.create(path="x")
                    assert Author.objects.count() == 0
                    assert Visit.objects.count() == 1

                def test_rows_are_gone_and_others_have_no_table(client):
                    assert Visit.objects.count() == 0
                    for query in (Author.objects.using("other"), Visit.objects.using("default")):
                        with pytest.raises(DatabaseError):
                            query.count()
                """,
        }
    )
    if migrated:
        project.treefold("makemigrations")
    assert "2 passed" in project.treefold("test", *PLAIN)
    assert not (project.root / "other.sqlite3").exists()


def test_commands_go_through_the_databases_of_the_models(project: Project) -> None:
    project.write(
        {
            "treefold.toml": """
                [databases]
                other = "sqlite:///other.sqlite3"
                """,
            "Models/visits.py": """
                from treefold.orm import Model

                class Visit(Model):
                    class Meta:
                        database = "other"
                """,
        }
    )
    project.treefold("makemigrations")
    assert "not applied to other: 0001_initial" in project.treefold("check", "--strict", code=1)
    assert "treefold migrate" in project.treefold("serve", "--require-migrated", code=1)
    project.treefold("migrate", "--database", "default")
    assert "not applied to other" in project.treefold("serve", "--require-migrated", code=1)
    assert "other:\n0001_initial: 1 step" in project.treefold("migrate")
    assert "not applied" not in project.treefold("check", "--strict")
    assert project.treefold("migrations", "drift") == ""


ALONE = """
from treefold_migrations import makemigrations
from treefold_orm import Model, configure, fields

class Thing(Model):
    name = fields.CharField(max_length=10)

configure(database={address!r})
if __name__ == "__main__":
    makemigrations("migrations")
"""


def test_a_project_of_the_orm_alone_has_its_tables_from_the_migrations(
    new_database: NewDatabase, tmp_path: Path
) -> None:
    (tmp_path / "test_it.py").write_text(
        "from things import Thing\n\ndef test_it(db):\n    assert Thing.objects.count() == 0\n"
    )
    with new_database() as address:
        (tmp_path / "things.py").write_text(ALONE.format(address=address))

        def run(*words: str) -> str:
            done = subprocess.run(
                [sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False
            )
            return done.stdout + done.stderr

        assert run("things.py") == ""
        words = [*PYTEST, "--rootdir=."]
        assert "1 passed" in run(*words)
        later = ALONE.replace("name =", "size = fields.IntegerField(null=True)\n    name =")
        (tmp_path / "things.py").write_text(later.format(address=address))
        (tmp_path / "test_it.py").write_text(
            "from things import Thing\n\ndef test_it(db):\n    Thing.objects.create(name='x')\n"
        )
        assert "1 failed" in run(*words)  # a field that no migration brings
        assert tables_of(address) == []


def test_questions_are_not_answered_by_guessing(project: Project) -> None:
    project.treefold("makemigrations")
    project.write({"Models/shop.py": MODELS.replace("title =", "headline =")})
    asked = project.treefold("makemigrations", code=1)
    assert "--rename book.title:headline" in asked
    assert "--drop book.title" in asked
    assert len(list((project.root / "migrations").glob("0*.py"))) == 1
    said = project.treefold("makemigrations", "--rename", "book.title:headline")
    assert said.startswith("created: migrations/0002_")
    project.treefold("migrate")
    project.write(
        {"Models/shop.py": MODELS.replace("    title = fields.CharField(max_length=200)\n", "")}
    )
    refused = project.treefold("makemigrations", code=1)
    assert "--allow-destructive" in refused or "--drop" in refused
    assert "Traceback" not in refused


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["migrate", "--phase", "later"], "Invalid value 'later' for --phase; use one of expand"),
        (["rollback", "--steps", "x"], "Invalid value 'x' for --steps; give a number from 1"),
        (["sqlmigrate", "0001", "--dialect", "oracle"], "Invalid value 'oracle' for --dialect"),
        (["migrate", "--app-dir", "nowhere"], "No folder 'nowhere'; name another with --app-dir"),
        (["migrate", "--plann"], "No such option: --plann"),
    ],
)
def test_wrong_use_is_told_in_one_line(
    tmp_path: Path, fork_server: ForkServer, words: list[str], message: str
) -> None:
    root = write_tree(tmp_path / "shop", TREE)
    project = Project(root, f"sqlite:///{tmp_path}/x.sqlite3", fork_server)
    said = project.treefold(*words, code=2)
    assert said.startswith(f"Error: {message}")
    assert said.count("\n") == 1


def test_plans_and_statements_change_nothing(project: Project) -> None:
    project.treefold("makemigrations")
    assert "create table book" in project.treefold("migrate", "--plan")
    assert 'CREATE TABLE "book"' in project.treefold("migrate", "--sql")
    assert 'CREATE TABLE "book"' in project.treefold("sqlmigrate", "0001", "--dialect", "postgres")
    assert "book" not in tables_of(project.address)
    project.treefold("migrate", "--fake")
    assert "book" not in tables_of(project.address)
    assert project.treefold("showmigrations") == "[x] 0001_initial\n"
    project.treefold("rollback", "--fake")
    project.treefold("migrate")
    project.treefold("rollback")
    assert "book" not in tables_of(project.address)


def test_every_command_has_help_and_no_colour(project: Project) -> None:
    shown = project.treefold("--help")
    for command in ("makemigrations", "migrate", "rollback", "sqlmigrate", "showmigrations"):
        assert f"  {command} " in shown
        own = project.treefold(command, "--help")
        assert "--app-dir DIR" in own
        assert "\x1b" not in own
    below = project.treefold("migrations", "--help")
    for command in ("list", "drift", "lint", "squash", "merge"):
        assert f"  {command} " in below
