"""The blocks of definitions at the end of a lock.

type User closed            a record that refuses other members
  id      int
  mail    str email ?       optional
type Role = "a" | "b"       a name for any other type
type User in                the view of bodies, where it differs from that of answers
type User@v2                what later versions have instead

A blank line is between the blocks of two names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby

from treefold_contract._text.route_lines import write_line
from treefold_contract._text.route_parser import read_key, read_member_end
from treefold_contract._text.type_parser import read_type, read_type_prefix
from treefold_contract._text.type_text import write_key, write_name, write_type
from treefold_contract._types.nodes import Definition, Member, Record, base_name

VIEWS = ("in", "out")


def group_by_name(keys: Iterable[str]) -> Iterator[list[str]]:
    """Yield the keys of definitions by name, each with those of its versions and views."""
    for _, group in groupby(sorted(keys, key=_key_order), _find_base):
        yield list(group)


def _find_base(key: str) -> str:
    return base_name(key.partition(" ")[0])


def _key_order(key: str) -> tuple[str, str]:
    return _find_base(key), key


def write_definition(key: str, definition: Definition) -> list[str]:
    """Return the lines of a definition, which begin with its name and view."""
    name, _, view = key.partition(" ")
    head = f"type {write_name(name)}" + (f" {view}" if view else "")
    if not isinstance(definition, Record):
        return [f"{head} = {write_type(definition)}"]
    members = sorted(definition.members, key=lambda each: each.name)
    return [
        f"{head} closed" if definition.is_closed else head,
        *(write_line(write_key(each.name), write_member_end(each)) for each in members),
    ]


def write_member_end(member: Member) -> str:
    """Return the text of a member after its name."""
    mark = " ?" if member.is_optional else ""
    default = f" = {member.default}" if member.default else ""
    return f"{write_type(member.type)}{mark}{default}"


def read_definition(head: str, lines: Sequence[str]) -> tuple[str, Definition]:
    """Return the key and the definition of a block.

    Raises:
        ValueError: the block is not a definition.
    """
    name, _, rest = head.removeprefix("type ").partition(" ")
    name = name.removeprefix("$")
    if rest.startswith("= "):
        return name, read_type(rest[2:])
    words = rest.split()
    view = words.pop(0) if words and words[0] in VIEWS else ""
    if view and words[:1] == ["="]:
        return f"{name} {view}", read_type(rest.partition("= ")[2])
    if words not in ([], ["closed"]):
        raise ValueError(f"Definition must end after its name, got {head!r}")
    key = f"{name} {view}" if view else name
    return key, Record(tuple(map(read_member, lines)), is_closed=bool(words))


@lru_cache(maxsize=16384)
def read_member(line: str) -> Member:
    """Return the member of one line."""
    name, rest = read_key(line.strip())
    node, rest = read_type_prefix(rest)
    return Member(name, node, *read_member_end(rest))
