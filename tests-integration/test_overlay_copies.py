"""Copies of versions that inherit, made by the commands: the files are those of the law."""

from pathlib import Path

import pytest
from overlay_trees.copies import copy_version
from overlay_trees.random_tree import RandomTree, draw_tree

from treefold_scaffold import flatten_version, plan_flatten, plan_version, write_version

SEEDS = [seed for seed in range(30) if seed % 5 != 4]  # the others inherit from no version


@pytest.fixture(params=SEEDS)
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> RandomTree:
    return draw_tree(tmp_path / "layers", request.param)


def read_files(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_a_copy_has_all_files_of_its_version(tree: RandomTree, tmp_path: Path) -> None:
    api = tree.root / "Api"
    before = read_files(api)
    for number, version in enumerate(tree.versions, 50):
        copy_version(api, tmp_path / version, version, tree.bases)
        write_version(tree.root, plan_version(tree.root, str(number), source=version))
        assert read_files(api / f"v{number}") == read_files(tmp_path / version), version
    after = read_files(api)
    assert {name: after[name] for name in before} == before


def test_a_flattened_version_has_the_files_of_its_copy(tree: RandomTree, tmp_path: Path) -> None:
    api, target = tree.root / "Api", tmp_path / "copies"
    for version in tree.versions:
        copy_version(api, target / version, version, tree.bases)
    # in any order: what inherits from a flattened version answers as before
    for version in tree.lot.sample(sorted(tree.bases), len(tree.bases)):
        flatten_version(tree.root, plan_flatten(tree.root, version))
        assert read_python_files(api / version) == read_files(target / version), version
        del tree.bases[version]
        for other in tree.versions:
            copy_version(api, tmp_path / f"{version}-{other}", other, tree.bases)
            again = read_files(tmp_path / f"{version}-{other}")
            assert again == read_files(target / other), (version, other)


def read_python_files(folder: Path) -> dict[str, bytes]:
    return {name: text for name, text in read_files(folder).items() if name != "version.toml"}
