"""`python shuffled_folders.py SEED COMMAND ...`: treefold over folders in any order.

The order in which a file system lists files differs from machine to machine.
"""

import os
import random
import sys
from collections.abc import Iterator
from typing import Any

order = random.Random(sys.argv[1])
list_folder, scan_folder = os.listdir, os.scandir


class Shuffled:
    """What `os.scandir` returns, in another order."""

    def __init__(self, path: Any = ".") -> None:
        with scan_folder(path) as entries:
            found = list(entries)
        order.shuffle(found)
        self._entries = iter(found)

    def __iter__(self) -> "Iterator[os.DirEntry[Any]]":
        return self._entries

    def __next__(self) -> "os.DirEntry[Any]":
        return next(self._entries)

    def __enter__(self) -> "Shuffled":
        return self

    def __exit__(self, *error: object) -> None: ...

    def close(self) -> None: ...


def list_shuffled(path: str = ".") -> list[str]:
    found = list_folder(path)
    order.shuffle(found)
    return found


for name, function in {"listdir": list_shuffled, "scandir": Shuffled}.items():
    setattr(os, name, function)

if __name__ == "__main__":
    from treefold_cli import main

    sys.argv[:] = ["treefold", *sys.argv[2:]]
    sys.exit(main())
