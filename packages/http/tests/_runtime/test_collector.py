"""No collection of garbage while a project is read, and all as before afterwards."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from treefold_http import Application, BootError
from treefold_http._runtime.collector import paused_collection


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[tuple[int, int, int]]:
    before = gc.get_threshold()
    yield before
    gc.enable()
    gc.set_threshold(*before)


def write_hook(root: Path, text: str) -> None:
    (root / "Api").mkdir()
    (root / "hooks.py").write_text(f"import gc\n{text}\n")


def test_no_collection_starts_while_a_project_is_read(tmp_path: Path):
    before = gc.get_threshold()
    record = "Path(__file__).with_name('seen').write_text(str(gc.get_threshold()[0]))"
    write_hook(tmp_path, f"from pathlib import Path\n{record}")
    Application(tmp_path).boot()
    assert int((tmp_path / "seen").read_text()) > 10**9
    assert gc.get_threshold() == before
    assert before[0] > 0


def test_a_boot_that_fails_leaves_the_collector_as_it_was(tmp_path: Path):
    before = gc.get_threshold()
    write_hook(tmp_path, "1 / 0")
    with pytest.raises(BootError):
        Application(tmp_path).boot()
    assert gc.get_threshold() == before


@pytest.mark.parametrize("objects", [50_000, 0])
def test_thresholds_that_a_hook_sets_are_kept(tmp_path: Path, objects: int):
    write_hook(tmp_path, f"gc.set_threshold({objects}, 20, 30)")
    Application(tmp_path).boot()
    assert gc.get_threshold()[:2] == (objects, 20)


def test_a_collector_that_a_hook_switches_off_stays_off(tmp_path: Path):
    write_hook(tmp_path, "gc.disable()")
    Application(tmp_path).boot()
    assert not gc.isenabled()


def test_a_process_without_collections_keeps_none():
    gc.set_threshold(0)
    with paused_collection():
        pass
    assert gc.get_threshold()[0] == 0


def test_blocks_inside_each_other_end_in_any_order():
    before = gc.get_threshold()
    outer, inner = paused_collection(), paused_collection()
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    inner.__exit__(None, None, None)
    assert gc.get_threshold() == before
