"""Take the Chinook sample database over with `migrations baseline`, on both databases.

`python tools/chinook/baseline.py FOLDER`, with FOLDER as `python tools/chinook` takes it. Directly
afterwards there must be nothing to make, to apply and to report; the models must read every row,
and make the same schema elsewhere. Exits with 1 if anything differs.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from chinook.__main__ import opened
from treefold_migrations import baseline, drift, makemigrations, migrate
from treefold_orm import close_all
from treefold_orm.schema import Meta, registry


def problems(engine: str, folder: Path, place: Path) -> Iterator[str]:
    """Yield a line for everything that is not as it must be."""
    database = opened(engine, folder, place)
    with contextlib.closing(database):
        database.configure()
        files, path = place / engine / "migrations", place / engine / f"tables_{engine}.py"
        baseline(files, path, metas=(), say=print)
        metas = models_of(path)
        made = makemigrations(files, check=True, metas=metas)
        yield from (f"makemigrations: {operation.describe()}" for operation in made.operations)
        yield from (f"drift: {difference}" for difference in drift(files))
        yield from (f"migrate: {run.name}" for run in migrate(files))
        yield from unread(metas, database)
        database.configure_empty("empty")
        migrate(files, database="empty")
        yield from (f"empty: {difference}" for difference in drift(files, database="empty"))
        close_all()


def models_of(path: Path) -> list[Meta]:
    """Import the models that were written."""
    sys.path.insert(0, str(path.parent))
    module = importlib.import_module(path.stem)
    return [meta for meta in registry if meta.model.__module__ == module.__name__]


def unread(metas: list[Meta], database: Any) -> Iterator[str]:
    """Yield the tables whose rows the models do not give, all columns of them."""
    for meta in metas:
        model: Any = meta.model
        rows = [[getattr(row, f.attname) for f in meta.columns] for row in model.objects.all()]
        (counted,) = database.run(f"SELECT count(*) FROM {meta.table}")[0]
        if len(rows) != counted or not counted:
            yield f"{meta.table_name}: {len(rows)} rows, not {counted}"
    named = {meta.name: meta.model for meta in metas}
    playlist: Any = named["Playlist"]
    tracks = sum(len(found.tracks.all()) for found in playlist.objects.prefetch_related("tracks"))
    link: Any = named["PlaylistTrack"]
    if tracks != link.objects.count():
        yield f"Playlist.tracks: {tracks} rows, not {link.objects.count()}"


def main() -> int:
    """Take both over; return the exit code."""
    folder, found = Path(sys.argv[1]), list[str]()
    with tempfile.TemporaryDirectory() as place:
        for engine in ("sqlite", "postgres"):
            lines = [f"{engine}: {line}" for line in problems(engine, folder, Path(place))]
            print(*lines or [f"{engine}: nothing is left to do"], sep="\n")
            found += lines
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
