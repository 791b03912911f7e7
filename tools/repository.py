"""The packages as the release tools see them: versions, ranges, changelogs, tags."""

import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
UNRELEASED = "## Unreleased"


@dataclass(frozen=True)
class Package:
    """One folder below `packages/`."""

    root: Path
    folder: str

    @property
    def path(self) -> Path:
        return self.root / "packages" / self.folder

    @property
    def manifest(self) -> Path:
        return self.path / "pyproject.toml"

    @property
    def changelog(self) -> Path:
        return self.path / "CHANGELOG.md"

    @cached_property
    def about(self) -> Path:
        return next(self.path.glob("src/*/__about__.py"))

    @cached_property
    def project(self) -> dict[str, Any]:
        return tomllib.loads(self.manifest.read_text(encoding="utf-8"))["project"]

    @property
    def distribution(self) -> str:
        return self.project["name"]

    @property
    def version(self) -> Version:
        found = re.search(r'__version__ = "(.+)"', self.about.read_text(encoding="utf-8"))
        return Version(found[1]) if found else sys.exit(f"{self.about} has no __version__")

    @property
    def ranges(self) -> dict[str, SpecifierSet]:
        """The range of each requirement with one, those of extras included."""
        optional = self.project.get("optional-dependencies", {})
        lists = [self.project.get("dependencies", []), *optional.values()]
        found = (Requirement(line) for lines in lists for line in lines)
        return {each.name: each.specifier for each in found if each.specifier}

    def tag(self, version: Version | str) -> str:
        return f"{self.folder}-v{version}"

    def section(self, heading: str, text: str | None = None) -> str | None:
        """Return what stands below a heading such as `## Unreleased`, None without that heading."""
        text = self.changelog.read_text(encoding="utf-8") if text is None else text
        line = rf"^{re.escape(heading)}(?: - [^\n]*)?$"
        found = re.search(rf"{line}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
        return found[1].strip() if found else None


def packages(root: Path) -> dict[str, Package]:
    """Return all packages by folder."""
    folders = sorted(path.parent.name for path in root.glob("packages/*/pyproject.toml"))
    return {folder: Package(root, folder) for folder in folders}


def package(root: Path, folder: str) -> Package:
    """Return one package; exit with the names that there are if there is no such folder."""
    found = packages(root)
    if folder not in found:
        sys.exit(f"Unknown package {folder!r}; use one of {', '.join(found)}")
    return found[folder]


def of_tag(root: Path, tag: str) -> tuple[Package, str]:
    """Return the package and the version of a tag such as `router-v0.2.0`."""
    folder, separator, version = tag.rpartition("-v")
    if not separator or not re.fullmatch(r"\d+\.\d+\.\d+", version):
        sys.exit(f"A tag must be <folder>-vX.Y.Z, got {tag!r}")
    return package(root, folder), version


def git(root: Path, *arguments: str) -> str:
    """Run git; exit with its message if it fails."""
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()
