"""Reads `routes.lock`: the reverse of `lock_writer`.

Blocks are read from top to bottom, and a version after the one that it differs from. An error names
the line, since a lock is merged by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from treefold_contract._errors import LockError
from treefold_contract._facts.facts import Lock, RouteFacts, VersionFacts
from treefold_contract._facts.paths import path_key
from treefold_contract._text.lock_writer import FORMAT, normalize_route
from treefold_contract._text.route_parser import build_route, read_dates, read_line, read_path
from treefold_contract._text.type_blocks import read_definition
from treefold_contract._text.versions import inherit_routes, move_route
from treefold_contract._types.nodes import Definition

MARKS = ("<<<<<<<", "=======", ">>>>>>>")


def read_lock(text: str) -> Lock:
    """Return the facts of a lock.

    Raises:
        LockError: the text is not a lock; the message names the line.
    """
    lines = text.split("\n")
    if not lines[0].startswith(f"{FORMAT} rules "):
        raise LockError(f"Lock must begin with '{FORMAT} rules N', got {lines[0][:80]!r}")
    reader = _Reader()
    for number, block in _split_blocks(lines):
        try:
            reader.read_block(block, number)
        except LockError:
            raise
        except ValueError as error:
            line = _find_bad_line(number, block)
            raise LockError(f"Line {line} of the lock is not valid: {error}") from None
    return reader.finish()


@dataclass
class _Reader:
    lock: Lock = field(default_factory=Lock)
    versions: list[VersionFacts] = field(default_factory=list["VersionFacts"])
    keys: set[tuple[str, str]] = field(default_factory=set["tuple[str, str]"])
    lines: dict[str, int] = field(default_factory=dict[str, int])
    definitions: dict[str, Definition] = field(default_factory=dict[str, Definition])
    routes: dict[str, list[RouteFacts]] = field(default_factory=dict[str, "list[RouteFacts]"])
    bases: dict[str, tuple[str, list[tuple[str, str]]]] = field(
        default_factory=dict[str, "tuple[str, list[tuple[str, str]]]"]
    )

    def read_block(self, lines: list[str], number: int = 0) -> None:
        head = lines[0]
        words = head.split(" ")
        if head.startswith("type "):
            key, definition = read_definition(head, lines[1:])
            if key in self.definitions:
                raise ValueError(f"Type {key!r} must be defined once")
            self.definitions[key] = definition
            self.lines[f"type {key}"] = number
        elif head.startswith(FORMAT):
            self.read_head(lines)
        elif len(words) == 3 and words[1] == "=":
            removed = [line.split(" ") for line in lines[1:]]
            if any(len(each) != 3 or each[0] != "-" for each in removed):
                raise ValueError("Section of a version must hold lines '- METHOD /path'")
            keys = [(path_key(read_path(path)), method) for _, method, path in removed]
            if words[0] in self.bases:
                raise ValueError(f"Version {words[0]!r} must begin once")
            self.bases[words[0]] = words[2], keys
        elif len(words) == 2 and words[0].isupper():
            route = _read_route(tuple(lines))
            if route.key in self.keys:
                raise ValueError(f"Route {route.title!r} must be listed once")
            self.keys.add(route.key)
            self.lines[route.title] = number
            self.routes.setdefault(route.version, []).append(route)
        else:
            raise ValueError(f"Block must be a route, a type or a version, got {head!r}")

    def read_head(self, lines: list[str]) -> None:
        settings = self.lock.settings
        for line in lines[1:]:
            word, _, rest = line.partition(" ")
            match word:
                case "default":
                    settings = replace(settings, default_version=rest)
                case "errors":
                    settings = replace(settings, errors=rest)
                case "automatic":
                    settings = replace(settings, automatic=(*settings.automatic, rest))
                case "mount":
                    settings = replace(settings, mounts=(*settings.mounts, rest))
                case "version":
                    self.versions.append(_read_version(rest))
                case _:
                    raise ValueError(f"Setting must be a known word, got {word!r}")
        rules = lines[0].rpartition(" ")[2]
        self.lock = replace(self.lock, settings=settings, rules=int(rules))

    def finish(self) -> Lock:
        """Return the lock, with each version as the whole that it is."""
        routes = self.routes
        for version, (base, removed) in self.bases.items():
            if base not in routes and base not in {each.name for each in self.versions}:
                raise LockError(f"Version {version!r} of the lock has no base {base!r}")
            changed = routes.get(version, [])
            routes[version] = inherit_routes(routes.get(base, []), removed, changed, version)
            for route in routes[version]:
                inherited = self.lines.get(move_route(route, base).title, 0)
                self.lines.setdefault(route.title, inherited)
        return replace(
            self.lock,
            routes=tuple(route for each in routes.values() for route in each),
            versions=tuple(self.versions),
            definitions=self.definitions,
            lines=self.lines,
        )


@lru_cache(maxsize=8192)
def _read_route(lines: tuple[str, ...]) -> RouteFacts:
    """Return the route of a block; most blocks of two locks are equal."""
    method, _, path = lines[0].partition(" ")
    facts = [read_line(line) for line in lines[1:]]
    return normalize_route(build_route(method, read_path(path), facts))


def _read_version(text: str) -> VersionFacts:
    name, stability, *rest = text.split(" ")
    if stability not in ("stable", "draft"):
        raise ValueError(f"Version must be 'stable' or 'draft', got {stability!r}")
    deprecation = read_dates(rest[1:]) if rest else None
    return VersionFacts(name, "stable" if stability == "stable" else "draft", deprecation)


def _split_blocks(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the first line of each block, and its lines."""
    block: list[str] = []
    for number, line in enumerate(lines, 1):
        if line.startswith(MARKS):
            raise LockError(f"Line {number} of the lock is a mark of a merge; resolve the conflict")
        if block and (not line or line.startswith("type ")):
            yield number - len(block), block
            block = []
        if line:
            block.append(line)
    if block:
        yield len(lines) + 1 - len(block), block


def _find_bad_line(number: int, block: list[str]) -> int:
    """Return the number of the line that is not valid, which for a block is often not the first."""
    for offset in range(1, len(block)):
        try:
            _Reader().read_block(block[: offset + 1])
        except ValueError:
            return number + offset
    return number
