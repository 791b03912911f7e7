"""Clients of a project: where each is written, and its files."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from treefold_cli._console.errors import MISUSE, CommandError

if TYPE_CHECKING:
    from treefold_contract import Lock, RouteWords

DEFAULT_NAME = "client"
LANGUAGES = ("ts", "python")


@dataclass(frozen=True, slots=True)
class ClientTarget:
    """A client that is written into a folder.

    Attributes:
        language: `ts` or `python`.
        folder: the folder, which is made if it is missing.
        name: the name of its files or package.
        version: the only version of the API that it has; empty for all.
    """

    language: str
    folder: Path
    name: str = DEFAULT_NAME
    version: str = ""

    @classmethod
    def parse(cls, text: str, root: Path) -> "ClientTarget":
        """Return the target of an option such as `ts:web/src/api` or `ts:web/src/api:shop`.

        Args:
            text: the language, the folder, and the name of the files if it is not `client`.
            root: the folder that a relative one is below.

        Raises:
            CommandError: the text is not of that form.
        """
        language, *words = text.split(":")
        if language not in LANGUAGES or not all(words) or len(words) not in (1, 2):
            raise CommandError(
                f"Invalid value {text!r} for --client; write a language, a folder and perhaps a"
                " name, such as 'ts:web/src/api' or 'python:clients:shop'",
                code=MISUSE,
            )
        return cls(language, root / words[0], *words[1:])

    def build_files(self, lock: "Lock", words: "Mapping[str, RouteWords]") -> dict[str, str]:
        """Return the files of the client by name.

        Raises:
            LockError: the version or the name is not one of a client.
        """
        from treefold_contract import write_client

        return write_client(self.language, lock, words, name=self.name, version=self.version)
