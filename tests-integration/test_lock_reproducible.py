"""The lock depends on the project alone: not on the hashes of texts, nor on the order of files.

`hatch run lock-seeds` takes 20 seeds; `hatch run lock-pythons` takes other versions of Python.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SEEDS = int(os.environ.get("TREEFOLD_LOCK_SEEDS", "3"))
SCRIPT = Path(__file__).with_name("shuffled_folders.py")


def run(seed: int, code: list[str], root: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "PYTHONHASHSEED": str(seed)}
    command = [sys.executable, *code]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_lock_is_equal_for_any_hash_seed_and_order_of_files(seed: int, sample: Path) -> None:
    lock = sample / "routes.lock"
    committed = lock.read_bytes()
    lock.unlink()
    try:
        done = run(seed, [str(SCRIPT), str(seed), "contract", "lock"], sample)
        assert done.returncode == 0, done.stderr
        assert lock.read_bytes() == committed
    finally:
        lock.write_bytes(committed)


def test_seeds_change_the_order_of_files(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number}.py").touch()
    show = f"import sys; sys.argv[1:] = {{}}; sys.path.insert(0, {str(SCRIPT.parent)!r})\n"
    show += "import os, shuffled_folders; print(os.listdir(), [e.name for e in os.scandir()])"

    orders = {run(seed, ["-c", show.format([str(seed)])], tmp_path).stdout for seed in (1, 2)}

    assert len(orders) == 2
    assert all("19.py" in order for order in orders)
