"""Hold how often the packages say `Any`, and read a private attribute of another object.

    python tools/loose_types.py                   # a line for each package
    python tools/loose_types.py --list PACKAGE    # the reads of private attributes, by place

`Any` is counted as a word in code, imports included, and held against 1,000 lines of the files
(SQLAlchemy has 28, Litestar 32). A read is `other._name`, where `other` is not `self` or `cls`. A
class may read what it declares, and a module what a class of it declares: these are no strangers.
Two classes of the ORM are interfaces between its rooms although all of it has an underscore, since
users name the attributes beside; reads of these have a ceiling of their own. Any other attribute
needs a reason in `REASONS`. `getattr(other, "_name")`, which no type checker sees, is refused.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sizes import find_docstring_lines

ROOT = Path(__file__).resolve().parents[1]
MOST_ANY = {"http": 35, "orm": 40}
"""The most words `Any` on 1,000 lines, by package."""
INTERFACES = {
    "packages/orm/src/treefold_orm/_building/query_protocol.py": "Query",
    "packages/orm/src/treefold_orm/_fields/meta.py": "Instance",
}
MOST_INTERFACE_READS = 300
"""The most reads of what the interfaces declare."""
MOST_READS = 60
"""The most reads of other private attributes in all packages."""
PUBLIC = {
    "_meta": "what a model publishes about itself; fields have all names without an underscore",
    "_make": "of named tuples, whose fields have all names without an underscore",
    "_replace": "as above",
    "_fields": "as above",
    "_value_": "of enumerations, documented by the standard library",
    "_exit": "of `os`, documented by the standard library",
    "_getframe": "of `sys`, documented by the standard library",
    "_current_frames": "as above",
}
"""Names that begin with an underscore and are public, each with the reason."""
QUERY, MODEL = "of one query, by the rooms that run it", "of models, whose fields have any name"
AIOSQLITE = "of aiosqlite, for calls that take one turn of its thread; held by test_private_names"
ASYNCIO = "of asyncio, for a loop inside of a loop; held by test_private_names"
REASONS = {
    **dict.fromkeys(("_clone", "_prefetches", "_cache"), QUERY),
    "_compile_partitioned_plan": QUERY,
    "_resolve_subquery": "of queries, managers and CTEs, which users extend",
    **dict.fromkeys(("_parent", "_build_related", "_insert_related"), "of a related manager"),
    "_after_related_insert": "of a related manager",
    **dict.fromkeys(("_get_or_load_related", "_set_related", "_declared_as"), MODEL),
    "_relation": "of the access to a relation, which a reload replaces",
    "_slots": "of a statement, by the file that writes values of the schema into its text",
    "_initializing": "of importlib, while the body of a module runs; held by test_private_names",
    **dict.fromkeys(("_STOP_RUNNING_SENTINEL", "_thread", "_tx", "_execute"), AIOSQLITE),
    "_connection": AIOSQLITE,
    **dict.fromkeys(("_get_running_loop", "_set_running_loop"), ASYNCIO),
    "_leave_task": "asyncio: the task is left as well, one for each thread since Python 3.14",
    "_enter_task": "and entered again",
    **dict.fromkeys(("_transport", "_sock"), "of asyncpg and asyncio, whose loop has ended"),
    **dict.fromkeys(("_spill_pieces", "_keep_pieces"), "of an upload, by the form it is read into"),
}
"""The other private attributes that are read from outside, each with the reason."""


@dataclass(frozen=True)
class Read:
    """A read of a private attribute of another object."""

    place: str
    text: str
    name: str
    is_unseen: bool = False


def main() -> None:
    """Print the counts, and fail if one is above its ceiling."""
    packages = sorted((ROOT / "packages").iterdir())
    declared = {name for file, kind in INTERFACES.items() for name in list_interface(file, kind)}
    strange: dict[str, list[Read]] = {}
    at_interfaces = 0
    for package in packages:
        reads = list(find_reads(package))
        strange[package.name] = [read for read in reads if read.name not in declared]
        at_interfaces += len(reads) - len(strange[package.name])
    if sys.argv[1:2] == ["--list"]:
        for read in strange[sys.argv[2]]:
            print(read.place, read.text)
        return
    above: list[str] = []
    for package in packages:
        share = compute_share_of_any(package)
        count = len(strange[package.name])
        print(f"{package.name:12} {share:5.1f} `Any` on 1,000 lines, {count:3} private reads")
        if share > (most := MOST_ANY.get(package.name, max(MOST_ANY.values()))):
            above.append(f"{package.name}: at most {most} `Any` may stand on 1,000 lines")
    every = [read for found in strange.values() for read in found]
    print(f"{len(every)} private reads, and {at_interfaces} of the interfaces between rooms")
    if len(every) > MOST_READS or at_interfaces > MOST_INTERFACE_READS:
        above.append(f"at most {MOST_READS} and {MOST_INTERFACE_READS} such reads may stand")
    above += [
        f"{read.place}: {read.text} reads a private attribute without a reason"
        for read in every
        if read.is_unseen or read.name not in REASONS
    ]
    sys.exit("\n".join(above) or None)


def list_interface(file: str, kind: str) -> Iterator[str]:
    """Yield the private names that a class declares."""
    for node in ast.walk(ast.parse((ROOT / file).read_bytes())):
        if isinstance(node, ast.ClassDef) and node.name == kind:
            for part in ast.walk(node):
                match part:
                    case ast.FunctionDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                        if is_private(name):
                            yield name
                    case _:
                        pass


def compute_share_of_any(package: Path) -> float:
    """Return how often the files of a package say `Any` on 1,000 lines."""
    words = lines = 0
    for file in (package / "src").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        lines += text.count("\n")
        words += count_any(text)
    return 1000 * words / lines


def count_any(text: str) -> int:
    """Return how often code says `Any`, in texts as in `cast("list[Any]", rows)` too; comments and
    docstrings do not count.
    """
    if "Any" not in text:
        return 0
    documented = find_docstring_lines(text)
    code = [line for number, line in enumerate(text.split("\n"), 1) if number not in documented]
    return sum(len(re.findall(r"\bAny\b", line.partition("#")[0])) for line in code)


def find_reads(package: Path) -> Iterator[Read]:
    """Yield the reads of private attributes in a package."""
    for file in sorted((package / "src").rglob("*.py")):
        tree = ast.parse(file.read_bytes())
        place = file.relative_to(package / "src")
        yield from find_reads_below(tree, str(place), list_declared(tree))


def find_reads_below(node: ast.AST, place: str, own: frozenset[str]) -> Iterator[Read]:
    """Yield the reads below a node, but for those of attributes of `own` classes."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.ClassDef():
                used = {name for each in ast.walk(child) if (name := name_of_own_read(each))}
                yield from find_reads_below(child, place, own | used)
                continue
            case ast.Attribute(value=value, attr=name, ctx=ast.Load()):
                if is_private(name) and name not in own and not is_own_object(value):
                    yield Read(f"{place}:{child.lineno}", ast.unparse(child), name)
            case ast.Call(
                func=ast.Name(id="getattr"), args=[value, ast.Constant(value=str() as name), *_]
            ) if is_private(name) and not is_own_object(value):
                yield Read(f"{place}:{child.lineno}", ast.unparse(child), name, is_unseen=True)
            case _:
                pass
        yield from find_reads_below(child, place, own)


def list_declared(tree: ast.Module) -> frozenset[str]:
    """Return the attributes that classes of a module declare: in `__slots__`, with a type or by an
    assignment, or as a method.
    """
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for part in node.body:
                match part:
                    case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                        found.add(name)
                    case ast.AnnAssign(target=ast.Name(id=name)):
                        found.add(name)
                    case ast.Assign(targets=[ast.Name(id=name)], value=value):
                        found.add(name)
                        if name == "__slots__":
                            found |= {
                                str(each.value)
                                for each in ast.walk(value)
                                if isinstance(each, ast.Constant)
                            }
                    case _:
                        pass
    return frozenset(found)


def name_of_own_read(node: ast.AST) -> str | None:
    """Return the attribute that `self.name` reads or sets, else None."""
    match node:
        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
            return name
        case _:
            return None


def is_own_object(node: ast.expr) -> bool:
    """Return True for `self`, `cls` and `super()`."""
    match node:
        case ast.Name(id="self" | "cls") | ast.Call(func=ast.Name(id="super")):
            return True
        case _:
            return False


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in PUBLIC


if __name__ == "__main__":
    main()
