"""A copy of the project that type checkers accept, and the way back from their messages.

A checker needs folder names that an import statement can hold. With `[id]`, mypy refuses the tree
or takes every `Get.py` for one module. The copy renames each such folder, and keeps lines and
columns; in the output of the checker the real names are restored. A version that inherits has the
files of its bases too, because its own ones import from them; a message about such a file names
the real one, once.
"""

import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from treefold_cli._checks.sources import project_files
from treefold_router import Layers

_SETTINGS = frozenset(
    {"pyproject.toml", "mypy.ini", ".mypy.ini", "setup.cfg", "pyrightconfig.json"}
)
_FILE = re.compile(r"Api/v[0-9]+/[^:\n]*?\.py")
_STAND_IN = re.compile(r"_tf([0-9]+)_\w*")


@dataclass(frozen=True, slots=True)
class TypedCopy:
    """The copy of one project.

    Attributes:
        root: the application root.
        place: where the copy is; the caller makes and removes the folder.
        files: the copied sources, as POSIX paths below `place`.
    """

    root: Path
    place: Path
    files: list[str] = field(default_factory=list[str])
    _inherited: dict[str, str] = field(default_factory=dict[str, str])
    _names: list[str] = field(default_factory=list[str])

    def copy_sources(self) -> None:
        """Copy sources and the settings of checkers, and no other file."""
        for file in project_files(self.root):
            is_source = file.suffix in (".py", ".pyi")
            if not is_source and (file.parent != self.root or file.name not in _SETTINGS):
                continue
            below = file.relative_to(self.root)
            names = map(self._make_importable_name, below.parts) if is_source else below.parts
            target = self.place.joinpath(*names)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
            if is_source:
                self.files.append(target.relative_to(self.place).as_posix())

    def copy_inherited_sources(self, layers: Layers) -> None:
        """Copy the sources of bases to where a copy of the inheriting version has them."""
        for file, source in layers.files.items():
            target = self.place.joinpath("Api", *map(self._make_importable_name, file.split("/")))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.root / "Api" / source, target)
            self._inherited[f"Api/{file}"] = f"Api/{source}"

    def restore_names(self, text: str) -> str:
        """Replace the names of the copy by the real ones in the output of a checker."""
        for place in {os.fspath(self.place), os.path.realpath(self.place)}:
            text = text.replace(place, os.fspath(self.root))
        text = _STAND_IN.sub(self._restore_matched_name, text)
        return self._restore_inherited_files(text) if self._inherited else text

    def _restore_inherited_files(self, text: str) -> str:
        seen = set(text.splitlines())
        kept: list[str] = []
        dropped = -1  # indentation of a message that is there for the base already
        for line in text.splitlines(keepends=True):
            bare = line.rstrip("\r\n")
            indentation = len(bare) - len(bare.lstrip())
            if 0 <= dropped < indentation:
                continue
            dropped = -1
            real = _FILE.sub(lambda match: self._inherited.get(match[0], match[0]), bare)
            if real != bare and real in seen and not real.endswith(".py"):
                dropped = indentation
                continue
            seen.add(real)
            kept.append(line.replace(bare, real))
        return "".join(kept)

    def _make_importable_name(self, name: str) -> str:
        stem = re.sub(r"\.pyi?$", "", name)
        if stem.isidentifier() and not _STAND_IN.fullmatch(stem):
            return name
        if stem not in self._names:
            self._names.append(stem)
        plain = re.sub(r"[^A-Za-z0-9]+", "_", stem)
        return f"_tf{self._names.index(stem)}_{plain}{name.removeprefix(stem)}"

    def _restore_matched_name(self, match: re.Match[str]) -> str:
        number = int(match[1])
        return self._names[number] if number < len(self._names) else match[0]
