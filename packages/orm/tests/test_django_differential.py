"""Random queries that mix types give the same rows as in Django, except for the differences that
`differential.writing.DIFFERENCES` lists.

`TREEFOLD_DJANGO_QUERIES` is the number of queries; the long form is a command of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from differential import tables
from differential.queries import Builder, Query, same_rows
from differential.writing import NOT_ON_SQLITE, Djangos

from treefold_orm import CheckViolation, DataError, close_all, configure, create_all
from treefold_orm._runtime.connections import _databases

QUERIES = int(os.environ.get("TREEFOLD_DJANGO_QUERIES", "600"))
BATCHES = 10
SEED = int(os.environ.get("TREEFOLD_DJANGO_SEED", "11"))
ENGINES = ("sqlite", "postgres")


@pytest.fixture(scope="module")
def django(
    tmp_path_factory: pytest.TempPathFactory, postgres_dsn: str, admin: Any
) -> Iterator[Any]:
    """Set up Django and this ORM over the same rows."""
    _databases.clear()
    folder: Path = tmp_path_factory.mktemp("differential")
    configure("sqlite", str(folder / "ours.sqlite3"), alias="sqlite")
    admin.run("CREATE SCHEMA differential")
    settings = {"search_path": "differential"}
    configure("postgres", postgres_dsn, alias="postgres", server_settings=settings)
    for alias in ENGINES:
        create_all(tables.Shop, tables.Sale, using=alias)
        tables.store(alias, SEED)
    parts = urlsplit(postgres_dsn)
    names = tables.django(
        str(folder / "django.sqlite3"),
        {
            "NAME": parts.path.lstrip("/"),
            "USER": parts.username,
            "PASSWORD": parts.password or "",
            "HOST": parts.hostname,
            "PORT": parts.port,
            "OPTIONS": {"options": "-c search_path=differential"},
        },
    )
    tables.store_django(names, SEED)
    yield names
    names.connections.close_all()
    close_all()
    _databases.clear()
    admin.run("DROP SCHEMA differential CASCADE")


def answer(ask: Any, faults: Any) -> Any:
    """Return the rows of a query, or the text DataError."""
    try:
        return ask()
    except faults:
        return "DataError"


def differences(query: Query, names: Any) -> Iterator[str]:
    """Yield the queries that the engines of this ORM answer otherwise than Django."""
    write = Djangos(names)

    def asked(alias: str) -> Any:
        with names.transaction.atomic(using=alias):
            return query.django(alias, write)

    wanted = answer(lambda: asked("default"), names.DataError)
    pairs = [("postgres", wanted, query.ordered), ("sqlite", wanted, query.ordered)]
    if not query.words & NOT_ON_SQLITE:
        pairs.append(("sqlite", answer(lambda: asked("lite"), names.DataError), False))
    for alias, rows, ordered in pairs:
        found = answer(lambda alias=alias: query.ours(alias), (DataError, CheckViolation))
        if "DataError" in (found, rows):
            same = found == rows
        else:
            same = same_rows(found, rows, ordered=ordered)
        if not same:
            yield f"{alias}: {query.label}\n  here:   {found}\n  Django: {rows}"


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_queries_answer_as_in_django(django: Any, batch: int) -> None:
    builder = Builder(SEED * 1000 + batch, django)
    found: list[str] = []
    for _ in range(QUERIES // BATCHES):
        found += differences(builder.query(), django)
    assert not found, "\n".join([f"{len(found)} answers differ:", *found[:10]])
