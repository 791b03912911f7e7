"""Unpacking of archives that git and hatchling made."""

import tarfile
from pathlib import Path


def unpack(archive: tarfile.TarFile, folder: Path | str) -> None:
    """Extract all files below a folder, through the filter for data where Python has it: 3.11.2
    and 3.11.3 do not.
    """
    kept = getattr(tarfile, "data_filter", None)
    archive.extractall(folder, **({"filter": kept} if kept else {}))  # noqa: S202 - archives of our own
