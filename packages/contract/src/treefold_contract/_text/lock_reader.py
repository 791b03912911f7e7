"""Reads `routes.lock`: the reverse of `lock_writer`.

A lock is merged by git and by hand: an error names the line, and a text in another form than the
writer's is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from treefold_contract._errors import LockError
from treefold_contract._facts.facts import Lock, RouteFacts, VersionFacts
from treefold_contract._facts.selection import iter_types
from treefold_contract._text.lock_writer import FORMAT, join_lines, write_route
from treefold_contract._text.route_parser import build_route, read_dates, read_line, read_path
from treefold_contract._text.type_blocks import read_definition, write_definition
from treefold_contract._text.versions import (
    RouteBlock,
    RoutePlace,
    find_place,
    sort_versions,
    spread_blocks,
)
from treefold_contract._text.written_form import require_equal_lines, require_known_types
from treefold_contract._types.nodes import Definition, referenced_names

MARKS = ("<<<<<<<", "=======", ">>>>>>>")


def read_lock(text: str) -> Lock:
    """Return the facts of a lock.

    Raises:
        LockError: the text is not a lock, or not as `write_lock` would write it, as after a merge
            of lines that do not belong together; the message names the line.
    """
    reader = _read_blocks(text)
    lock = reader.build_lock()
    require_equal_lines(text, reader.write_again(lock))
    require_known_types(lock, reader.names)
    return lock


def parse_lock(text: str) -> Lock:
    """Return the facts of a text that may be in another form than that of a lock.

    Raises:
        LockError: a line is not valid; the message names it.
    """
    return _read_blocks(text).build_lock()


def _read_blocks(text: str) -> _Reader:
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
    return reader


@dataclass(frozen=True, slots=True)
class _ReadRoute:
    """The block of a route; `lines` are those that are written for it, without `gone`."""

    block: RouteBlock
    lines: Sequence[str]
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class _ReadType:
    """The block of a definition; `lines` are those that are written for it."""

    key: str
    definition: Definition
    lines: Sequence[str]
    names: frozenset[str]


@dataclass
class _Reader:
    """The blocks of a text.

    Attributes:
        lines: the first line of each block, by the title of its route or by `type` and its name.
        names: the names of types in each block, by the same keys.
    """

    lock: Lock = field(default_factory=Lock)
    versions: list[VersionFacts] = field(default_factory=list["VersionFacts"])
    keys: set[tuple[str, str]] = field(default_factory=set["tuple[str, str]"])
    blocks: list[tuple[RouteBlock, int]] = field(default_factory=list["tuple[RouteBlock, int]"])
    lines: dict[str, int] = field(default_factory=dict[str, int])
    names: dict[str, frozenset[str]] = field(default_factory=dict[str, "frozenset[str]"])
    routes: dict[int, _ReadRoute] = field(default_factory=dict[int, "_ReadRoute"])
    types: dict[str, _ReadType] = field(default_factory=dict[str, "_ReadType"])

    def read_block(self, lines: list[str], number: int = 0) -> None:
        head = lines[0]
        words = head.split(" ")
        if head.startswith("type "):
            read = _read_type(tuple(lines))
            if read.key in self.types:
                raise ValueError(f"Type {read.key!r} must be defined once")
            self.types[read.key] = read
            self.lines[f"type {read.key}"] = number
            self.names[f"type {read.key}"] = read.names
        elif head.startswith(FORMAT):
            self.read_head(lines)
        elif len(words) == 2 and words[0].isupper():
            read_route = _read_route(tuple(lines))
            route = read_route.block.route
            if route.key in self.keys:
                raise ValueError(f"Route {route.title!r} must be listed once")
            self.keys.add(route.key)
            self.blocks.append((read_route.block, number))
            self.routes[id(route)] = read_route
            self.names[route.title] = read_route.names
        else:
            raise ValueError(f"Block must be a route or a type, got {head!r}")

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

    def write_again(self, lock: Lock) -> str:
        """Return the text that is written for the lock of these blocks."""
        return join_lines(
            lock,
            lambda route: self.routes[id(route)].lines,
            lambda key, _: self.types[key].lines,
        )

    def build_lock(self) -> Lock:
        """Return the lock, with each version as the whole that it is."""
        versions = [each.name for each in sort_versions(self.versions)]
        routes: dict[str, list[RouteFacts]] = {"": [], **{name: [] for name in versions}}
        places: dict[RoutePlace, dict[str, RouteBlock]] = {}
        numbers: dict[str, int] = {}
        for block, number in self.blocks:
            route = block.route
            if route.version in versions:
                places.setdefault(find_place(route), {})[route.version] = block
                numbers[route.title] = number
            else:
                routes[""].append(route)
                self.lines[route.title] = number
        for own in places.values():
            number = 0
            for route in spread_blocks(own, versions):
                number = self.lines[route.title] = numbers.get(route.title, number)
                routes[route.version].append(route)
        return replace(
            self.lock,
            routes=tuple(route for each in routes.values() for route in each),
            versions=tuple(self.versions),
            definitions={key: read.definition for key, read in self.types.items()},
            lines=self.lines,
        )


@lru_cache(maxsize=8192)
def _read_type(lines: tuple[str, ...]) -> _ReadType:
    key, definition = read_definition(lines[0], lines[1:])
    names = frozenset(referenced_names(definition))
    return _ReadType(key, definition, write_definition(key, definition), names)


@lru_cache(maxsize=8192)
def _read_route(lines: tuple[str, ...]) -> _ReadRoute:
    """Return the block of a route; most blocks of two locks are equal."""
    method, _, path = lines[0].partition(" ")
    facts = [read_line(line) for line in lines[1:]]
    gone = [fact[1] for fact in facts if isinstance(fact, tuple) and fact[0] == "gone"]
    route = build_route(method, read_path(path), facts)
    names = frozenset(name for node in iter_types(route) for name in referenced_names(node))
    return _ReadRoute(RouteBlock(route, gone[0] if gone else ""), write_route(route), names)


def _read_version(text: str) -> VersionFacts:
    name, stability, *rest = text.split(" ")
    if stability not in ("stable", "draft"):
        raise ValueError(f"Version must be 'stable' or 'draft', got {stability!r}")
    deprecation = read_dates(rest[1:]) if rest else None
    return VersionFacts(name, "stable" if stability == "stable" else "draft", deprecation)


def _split_blocks(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the first line of each block, and its lines."""
    block: list[str] = []
    is_head = True
    for number, line in enumerate(lines, 1):
        if line.startswith(" "):
            block.append(line)
            continue
        if line.startswith(MARKS):
            raise LockError(f"Line {number} of the lock is a mark of a merge; resolve the conflict")
        if block and not (line and is_head):
            yield number - len(block), block
            block, is_head = [], False
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
