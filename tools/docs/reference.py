"""Write `docs/reference/`: one page for each public module, from signatures and docstrings.

`python tools/docs/reference.py [FOLDER]`. A name is described on the page of the first module in
`MODULES` that exports it; pages of later modules link there.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MODULES = {
    "treefold": (
        *("treefold", "treefold.middleware", "treefold.auth", "treefold.cache"),
        *("treefold.testing", "treefold.logging", "treefold.asgi"),
    ),
    "treefold.orm": (
        *(
            "treefold.orm",
            "treefold.jobs",
            "treefold_orm.fields",
            "treefold_orm.testing",
            "treefold_orm.connections",
            "treefold_orm.schema",
        ),
    ),
    "treefold.migrations": ("treefold.migrations",),
    "Packages": (
        *("treefold_http", "treefold_http.extensions", "treefold_http.openapi"),
        *("treefold_http.reload", "treefold_router", "treefold_logging", "treefold_orm"),
        *("treefold_migrations", "treefold_docs_ui", "treefold_scaffold", "treefold_cli"),
        "treefold_server",
        "treefold_jobs",
        "treefold_contract",
    ),
}
"""The public modules by section of the index, in the order in which names find their page."""

_SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises|Examples?):$")
_ITEM = re.compile(r"(?P<names>[\w*., ]+?):\s+(?P<text>.*)", re.DOTALL)
_WIDTH = 88


def public_names(module: ModuleType) -> list[str]:
    """Return the names that a module exports, in alphabetical order."""
    listed: list[str] | None = getattr(module, "__all__", None)
    if listed is None:
        listed = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_")
            and not inspect.ismodule(value)
            and getattr(value, "__module__", "").partition(".")[0].startswith("treefold")
        ]
    return sorted({name for name in listed if not name.startswith("__")}, key=str.lower)


def write_reference(folder: Path) -> dict[str, list[str]]:
    """Write the pages; return the names of each module."""
    folder.mkdir(parents=True, exist_ok=True)
    pages: dict[int, tuple[str, str]] = {}
    described: dict[str, list[str]] = {}
    for name in (name for section in MODULES.values() for name in section):
        module = importlib.import_module(name)
        described[name] = public_names(module)
        text = "\n".join(_page(name, module, pages))
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    (folder / "index.md").write_text("\n".join(_index(described)), encoding="utf-8")
    return described


def _index(described: dict[str, list[str]]) -> Iterator[str]:
    yield "# Reference\n\nEvery public name of every package, from its docstring.\n"
    for section, modules in MODULES.items():
        yield f"## {section}\n\n| Module | Names | |\n|---|---|---|"
        for name in modules:
            summary = (inspect.getdoc(importlib.import_module(name)) or "").partition("\n\n")[0]
            words = summary.replace("\n", " ").replace("|", "\\|")
            yield f"| [`{name}`]({name}.md) | {len(described[name])} | {words} |"
        yield ""


def _page(name: str, module: ModuleType, pages: dict[int, tuple[str, str]]) -> Iterator[str]:
    yield f"# {name}\n"
    yield _prose(inspect.getdoc(module) or "")
    for public in public_names(module):
        value = getattr(module, public)
        if inspect.ismodule(value):
            target = f"{value.__name__}.md"
            listed = any(value.__name__ in section for section in MODULES.values())
            link = f"[`{value.__name__}`]({target})" if listed else f"`{value.__name__}`"
            yield f"## {public}\n\nThe module {link}.\n"
            continue
        is_described = inspect.isclass(value) or inspect.isroutine(value)
        if is_described and id(value) in pages:
            page, title = pages[id(value)]
            yield f"## {public}\n\nSee [{title}]({page}.md#{_anchor(title)}).\n"
            continue
        if is_described:
            pages[id(value)] = (name, public)
        yield f"## {public}\n"
        yield from _describe(public, value)


def _describe(name: str, value: Any) -> Iterator[str]:
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        yield f"```text\n{name} = {_shorten(repr(value))}\n```\n"
        return
    yield f"```text\n{signature(name, value)}\n```\n"
    yield _prose(_own_docstring(value))
    if inspect.isclass(value):
        for member, found in _members(value):
            yield f"### {name}.{member}\n"
            if isinstance(found, property):
                yield _prose(inspect.getdoc(found) or "")
                continue
            yield f"```text\n{signature(member, found)}\n```\n"
            yield _prose(inspect.getdoc(found) or "")


def _own_docstring(value: Any) -> str:
    """Return a docstring that is not inherited from Python's own classes."""
    text = inspect.getdoc(value) or ""
    if inspect.isclass(value):
        foreign = (base for base in value.__mro__ if not base.__module__.startswith("treefold"))
        if any(inspect.getdoc(base) == text for base in foreign):
            return ""
        if re.match(rf"{value.__name__}\(.*\)$", text, re.DOTALL):
            return ""  # written by dataclass
    return text


def _members(value: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties that a class defines, with a docstring."""
    for name, found in sorted(vars(value).items()):
        if name.startswith("_"):
            continue
        member = getattr(value, name) if isinstance(found, classmethod | staticmethod) else found
        if (inspect.isroutine(member) or isinstance(member, property)) and inspect.getdoc(member):
            yield name, member


def signature(name: str, value: Any) -> str:
    """Return how a class or function is called, one parameter a line where it is long."""
    try:
        found = inspect.signature(value)
    except (ValueError, TypeError):
        return f"class {name}" if inspect.isclass(value) else f"{name}(...)"
    parameters = [one for one in found.parameters.values() if one.name not in {"self", "cls"}]
    parts = [_parameter(one) for one in parameters]
    kinds = [one.kind for one in parameters]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        parts.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    before = "class " if inspect.isclass(value) else ""
    before = "async def " if inspect.iscoroutinefunction(value) else before
    returns = found.return_annotation
    after = "" if returns in {inspect.Signature.empty, None} else f" -> {_annotation(returns)}"
    if inspect.isclass(value):
        after = ""
    line = f"{before}{name}({', '.join(parts)}){after}"
    if len(line) <= _WIDTH:
        return line
    return f"{before}{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){after}"


def _parameter(one: inspect.Parameter) -> str:
    stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    text = stars + one.name
    if one.annotation is not inspect.Parameter.empty:
        text += f": {_annotation(one.annotation)}"
    if one.default is not inspect.Parameter.empty:
        text += f" = {_shorten(repr(one.default))}"
    return text


def _annotation(value: Any) -> str:
    text = value if isinstance(value, str) else inspect.formatannotation(value)
    return re.sub(r"\b(?:typing|collections\.abc|treefold\w*(?:\.\w+)*)\.(?=\w)", "", text)


def _shorten(text: str) -> str:
    text = re.sub(r" at 0x[0-9a-f]+", "", text).replace("\n", " ")
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}..."


def _anchor(title: str) -> str:
    return re.sub(r"[^\w-]", "", title.lower())


def _prose(text: str) -> str:
    """Return a docstring as Markdown: sections of arguments, results and errors as lists."""
    lines: list[str] = []
    section = ""
    for line in text.splitlines():
        found = _SECTION.match(line)
        if found:
            section = found[1]
            lines += [f"**{section}**", ""]
        elif section and line.startswith("    ") and not line.startswith("     "):
            lines.append(_item(line.strip(), section))
        elif section and line.startswith("     "):
            lines.append(f"    {line.strip()}")
        else:
            section = "" if line and not line.startswith(" ") else section
            lines.append(line)
    return "\n".join(lines) + "\n"


def _item(text: str, section: str) -> str:
    named = _ITEM.match(text) if section in {"Args", "Attributes", "Raises"} else None
    if named is None:
        return f"- {text}"
    return f"- `{named['names']}`: {named['text']}"


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/reference"
    found = write_reference(target)
    print(f"{sum(map(len, found.values()))} names on {len(found)} pages in {target}")
