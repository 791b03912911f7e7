"""The copies that versions which inherit stand for, made by copying and deleting files.

copy the whole base, its own bases included
for each `X.gone` of the version: delete the folder, the method file and the module X
for each own file: delete the method files of the base at its place
write the own files
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

NAMES = ("GET", "PUT", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS")
VERBS = {name: name for name in NAMES} | dict.fromkeys(("WS", "SOCKET", "WEBSOCKET"), "WS")


def copy_project(source: Path, target: Path, bases: dict[str, str], unserved: set[str]) -> None:
    """Write the project without any version that inherits or is only a base."""
    for version in (entry.name for entry in (source / "Api").iterdir()):
        if version not in unserved:
            copy_version(source / "Api", target / "Api" / version, version, bases)


def copy_version(api: Path, target: Path, version: str, bases: dict[str, str]) -> None:
    """Write one version as the full copy that it stands for."""
    if version in bases:
        copy_version(api, target, bases[version], bases)
    target.mkdir(parents=True, exist_ok=True)
    own = sorted(path for path in (api / version).rglob("*") if path.is_file())
    for mark in own:
        if mark.suffix == ".gone":
            _delete_marked(target, mark.relative_to(api / version))
    files = [file.relative_to(api / version) for file in own if file.suffix == ".py"]
    for path in files:
        for former in list(_find_method_files(target, path)):
            former.unlink()
    for path in files:
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(api / version / path, target / path)


def _delete_marked(target: Path, mark: Path) -> None:
    name = mark.name.removesuffix(".gone")
    for folder in list(_find_same_folders(target, mark.parent / name)):
        shutil.rmtree(folder)
    for former in list(_find_method_files(target, mark.with_name(f"{name}.py"))):
        former.unlink()
    (target / mark.with_name(f"{name}.py")).unlink(missing_ok=True)


def _find_method_files(target: Path, path: Path) -> Iterator[Path]:
    verb = VERBS.get(path.stem.upper())
    if path.suffix != ".py" or verb is None or "Services" in path.parts[:-1]:
        return
    for folder in _find_same_folders(target, path.parent):
        for file in folder.iterdir():
            if file.suffix == ".py" and VERBS.get(file.stem.upper()) == verb:
                yield file


def _find_same_folders(target: Path, path: Path) -> Iterator[Path]:
    """Yield the folders that have the URL of a path, or its name below `Services`."""
    found, exact = [target], False
    for name in path.parts:
        exact = exact or name == "Services"
        found = [
            child
            for folder in found
            if folder.is_dir()
            for child in folder.iterdir()
            if child.is_dir() and _is_same(child.name, name, exact=exact)
        ]
    yield from found


def _is_same(one: str, other: str, *, exact: bool) -> bool:
    if exact or one == "Services":
        return one == other
    if one.startswith("[") or other.startswith("["):
        return one[0] == other[0] == "["
    return one.lower() == other.lower()
