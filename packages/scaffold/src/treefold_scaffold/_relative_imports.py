"""Rewrite version-qualified imports of one file as relative ones; every other byte stays.

In `Api/v1/User/[id]/Get.py`:

    from Api.v1.User.Services.names import label     from ..Services.names import label
    import Api.v1.User.Services.names as names       from ..Services import names as names
    import_module("Api.v1.User.Services.names")      import_module("...User.Services.names",
                                                                   __package__)

A file without its version's name means the same in each version that inherits it. What has no
relative form is left: `import Api.v1.User`, `from Api import v1`, annotations that are texts.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import libcst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper, QualifiedNameProvider

from treefold_scaffold._rewrite_imports import (
    Edit,
    VersionRename,
    apply_edits,
    find_leftmost_operand,
    find_version_lines,
    parse_with_metadata,
    split_dotted_name,
)

_API = "Api"


def make_imports_relative(
    source: bytes, version: str, folders: Sequence[str]
) -> tuple[bytes, int, tuple[int, ...]]:
    """Return a source with relative imports.

    Args:
        source: a Python file that compiles.
        version: the version that it lies in, such as `v1`.
        folders: names of the folders between the version and the file.

    Returns:
        The new source, how many imports changed, and the lines that still name the version.

    Raises:
        SourceError: libcst cannot parse the file, or its encoding does not round-trip.
    """
    wrapper = parse_with_metadata(source)
    edits = sorted(set(_RelativeEditCollector(wrapper, version, folders).collect_edits()))
    changed = apply_edits(source, edits)
    rename = VersionRename(old=version, new=version, package=(_API, version, *folders))
    return changed, len(edits), find_version_lines(changed, rename)


class _RelativeEditCollector(libcst.CSTVisitor):
    """Collects the edits of one file."""

    def __init__(self, wrapper: MetadataWrapper, version: str, folders: Sequence[str]) -> None:
        super().__init__()
        self._module = wrapper.module
        self._version = version
        self._folders = tuple(folders)
        self._spans: Any = wrapper.resolve(ByteSpanPositionProvider)
        self._qualified: Any = {}
        if "import_module" in wrapper.module.code:
            self._qualified = wrapper.resolve(QualifiedNameProvider)
        self._found: list[Edit] = []

    def collect_edits(self) -> list[Edit]:
        self._module.visit(self)
        return self._found

    def visit_Import(self, node: libcst.Import) -> bool:
        alias = node.names[0]
        names = [name.value for name in split_dotted_name(alias.name)]
        is_own = names[:2] == [_API, self._version] and len(names) > 2
        if len(node.names) == 1 and alias.asname is not None and is_own:
            bound = self._module.code_for_node(alias.asname)
            text = f"from {self._format_module(names[2:-1])} import {names[-1]}{bound}"
            span = self._spans[node]
            self._found.append((span.start, span.start + span.length, text))
        return False

    def visit_ImportFrom(self, node: libcst.ImportFrom) -> bool:
        if node.module is None:
            return False
        names = [name.value for name in split_dotted_name(node.module)]
        above = [_API, self._version, *self._folders]
        # as many dots as lead to `Api` itself, and to nothing below it
        if node.relative and len(node.relative) == len(above):
            names.insert(0, _API)
        elif node.relative:
            return False
        if names[:2] == [_API, self._version]:
            first, last = (*node.relative, node.module)[0], self._spans[node.module]
            text = self._format_module(names[2:])
            self._found.append((self._spans[first].start, last.start + last.length, text))
        return False

    def visit_Call(self, node: libcst.Call) -> None:
        found: Any = self._qualified.get(node.func)
        names: Any = found() if callable(found) else found  # libcst answers lazily
        if len(node.args) == 1 and any(
            name.name == "importlib.import_module" for name in names or ()
        ):
            self._found.extend(self._edit_import_call(node.args[0]))

    def _edit_import_call(self, argument: libcst.Arg) -> Iterator[Edit]:
        if argument.star or (argument.keyword and argument.keyword.value != "name"):
            return
        text = find_leftmost_operand(argument.value)
        if not isinstance(text, libcst.SimpleString | libcst.FormattedString):
            return
        source = self._module.code_for_node(text)
        match = re.match(
            rf"\w{{0,2}}(\"\"\"|'''|\"|')(?P<qualified>Api\.{self._version})(\.|\1$)", source
        )
        if match is None or (match[3] != "." and argument.value is not text):
            return
        start = self._spans[text].start + len(source[: match.start("qualified")].encode())
        # the dot that follows the version is the last one of these
        dots = "." * (len(self._folders) + (0 if match[3] == "." else 1))
        yield start, start + len(match["qualified"]), dots
        span = self._spans[argument.value]
        end = span.start + span.length
        yield end, end, f", {'package=' if argument.keyword else ''}__package__"

    def _format_module(self, target: Sequence[str]) -> str:
        """Return the relative name of a module below the version."""
        same = 0
        while same < min(len(target), len(self._folders)) and target[same] == self._folders[same]:
            same += 1
        return "." * (len(self._folders) - same + 1) + ".".join(target[same:])
