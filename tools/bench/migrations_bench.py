"""What migrations cost without a database: replaying files, and comparing models with them.

    python tools/bench/migrations_bench.py

Figures are CPU seconds of fresh processes, the median of several, each measured beside the floor of
a boot and carried to the machine where the bars were set. The exit status is 1 when one of them is
above its bar. Compiled files are cached, as in production.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from boot_floor import TABLE as BOOT_FLOOR, boot_floor
from http_cases import project
from turns import note_row, turn

ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
FILES = 500
MODELS = 200

MODEL = """
class Model{n}(Model):
    name = fields.CharField(max_length=80, unique=True)
    text = fields.TextField(default="")
    rank = fields.IntegerField(null=True, db_index=True)
    price = fields.DecimalField(max_digits=9, decimal_places=2, default=0)
    made = fields.DateTimeField(auto_now_add=True)
    kind = fields.CharField(max_length=1, choices=[("a", "Ann"), ("b", "Bob")], default="a")
    data = fields.JSONField(default=dict)
    {key}

    class Meta:
        constraints = [
            UniqueConstraint("name", "rank"),
            CheckConstraint(Q(rank__gte=0), name="rank{n}"),
        ]
        indexes = [Index("-rank", "name")]
"""
REPLAY = """
from treefold_migrations._files.loading import load_folder
history = load_folder({folder!r})
replay = getattr(history, "compute_state_after", None) or history.state_at  # its former name
assert len(history) == {files} and len(replay().tables) == {tables}
"""
CHECK = """
import sys
sys.path.insert(0, {root!r})
import bench_models
from treefold_migrations._commands.files import makemigrations
assert makemigrations({folder!r}, check=True).operations == []
"""


def cpu(code: str) -> float:
    """Return the CPU seconds of a fresh interpreter that runs this code."""
    with turn():
        before = children_seconds()
        subprocess.run([sys.executable, "-c", code], check=True, env=ENVIRONMENT)
        return children_seconds() - before


def children_seconds() -> float:
    """Return the CPU seconds of all children that have ended, in microseconds where known."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)  # os.times() counts in steps of 10 ms
    return usage.ru_utime + usage.ru_stime


class Figure(NamedTuple):
    """CPU seconds: each as measured here, and their median on the machine of the bars."""

    here: list[float]
    carried: float


def figure(code: str, rounds: int, floor_root: Path) -> Figure:
    """Measure code over the bare interpreter, beside the floor of a boot."""
    cpu(code)  # compiles what is compiled once
    measured: list[float] = []
    floors: list[float] = []
    for _ in range(rounds):
        measured.append(cpu(code) - cpu("pass"))
        floors.append(boot_floor(floor_root))
    ratios = (taken / floor for taken, floor in zip(measured, floors, strict=True))
    return Figure(measured, statistics.median(ratios) * BOOT_FLOOR)


def write_models(root: Path) -> None:
    """Write a module of models, each with a key to the one before."""
    parts = [
        "from treefold_orm import CheckConstraint, Index, Model, Q, UniqueConstraint, fields\n"
    ]
    for n in range(MODELS):
        key = f"before = fields.ForeignKey(Model{n - 1}, null=True)" if n else ""
        parts.append(MODEL.format(n=n, key=key))
    (root / "bench_models.py").write_text("\n".join(parts), encoding="utf-8")


def write_history(folder: Path) -> int:
    """Write a long history; return how many tables it leads to."""
    from treefold_migrations import (
        AddField,
        AddIndex,
        AlterField,
        CreateTable,
        Operation,
        RenameField,
    )
    from treefold_migrations._files.writing import write_migration
    from treefold_orm import Index, fields

    before: list[str] = []
    for n in range(FILES):
        table = f"table{n // 5}"
        steps: list[Operation] = [
            CreateTable(
                table,
                {
                    "id": fields.BigAutoField(),
                    "name": fields.CharField(max_length=80),
                    "n": fields.IntegerField(),
                },
                f"Table{n // 5}",
            ),
            AddField(table, "text", fields.TextField(null=True)),
            AlterField(table, "text", fields.TextField(default=""), fill=""),
            RenameField(table, "n", "number"),
            AddIndex(table, Index("-number", "name")),
        ]
        name = f"{n + 1:04d}_step"
        write_migration(folder, name, before, [steps[n % 5]])
        before = [name]
    return -(-FILES // 5)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=7)
    rounds = options.parse_args().rounds
    failed = False

    def row(name: str, found: Figure, bar: float) -> None:
        nonlocal failed
        failed = failed or found.carried > bar
        here = statistics.median(found.here)
        note_row(name, found.here)
        print(f"{name:<52}{found.carried:7.3f} s   at most {bar:.2f} s, here {here:.3f} s")

    with tempfile.TemporaryDirectory() as place, project(1000, {}) as floor_root:
        root = Path(place)
        tables = write_history(root / "long")
        code = REPLAY.format(folder=str(root / "long"), files=FILES, tables=tables)
        found = figure(code, rounds, floor_root)
        row(f"replay {FILES} migrations, the ORM's import included", found, 1.0)
        write_models(root)
        first = CHECK.format(root=str(root), folder=str(root / "models"))
        subprocess.run(
            [sys.executable, "-c", first.replace("check=True).operations == []", ").path")],
            check=True,
        )
        found = figure(first, rounds, floor_root)
        row(f"makemigrations --check on {MODELS} models", found, 0.5)
    sys.exit(failed)


if __name__ == "__main__":
    main()
