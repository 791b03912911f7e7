"""The folders and files that `dev` watches: the root, and those of settings and options."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from treefold_cli._console.errors import MISUSE, CommandError
from treefold_cli._dev.snapshot import Snapshot, take_snapshot


@dataclass(frozen=True, slots=True)
class WatchedFolders:
    """What `dev` watches, and how it was before the boot.

    Attributes:
        root: the root of the project.
        include: patterns of files besides code and settings.
        seen: the files of each folder; the root is the first.
    """

    root: Path
    include: tuple[str, ...]
    seen: dict[Path, Snapshot]

    @classmethod
    def take_snapshots(
        cls, root: Path, folders: Sequence[str], include: Sequence[str]
    ) -> "WatchedFolders":
        """Look at the root and at other folders, whose paths start at the root."""
        others = [(root / folder).resolve() for folder in folders]
        real = root.resolve()  # the root may be a link
        places = dict.fromkeys([root, *(one for one in others if not one.is_relative_to(real))])
        return cls(root, tuple(include), {one: take_snapshot(str(one), include) for one in places})


def require_watched_folder(root: Path, folder: str) -> None:
    """Refuse a folder to watch that does not exist; its path starts at the root.

    Raises:
        CommandError: the message names the setting and the option.
    """
    place = (root / folder).resolve()
    if not place.is_dir():
        raise CommandError(
            f"Cannot watch {folder!r}: there is no folder {place}; correct the setting"
            " 'watch' or --reload-dir",
            code=MISUSE,
        )
