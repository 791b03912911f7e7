"""Rewrite one source file for another version: `Api.v1` becomes `Api.v2` in its code.

Finds the positions with libcst and inserts the new name into the source text, so every other byte
(encoding, line ends, comments, layout) stays. Reads and writes no file. Imported only when needed:
libcst takes longer to import than all the rest of this package.
"""

import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import libcst
from libcst.metadata import (
    ByteSpanPositionProvider,
    MetadataWrapper,
    ParentNodeProvider,
    QualifiedNameProvider,
    Scope,
    ScopeProvider,
)

from treefold_scaffold._errors import SourceError

Edit = tuple[int, int, str]

_API = "Api"
_IMPORTERS = frozenset({"importlib.import_module", "builtins.__import__"})
_BOM = b"\xef\xbb\xbf"
_ends_version = re.compile(r"(?:[\s+()\\]|#.*\n)*(?:\Z|\w{0,2}['\"]+\.)").match
"""Match the source that follows a string, if the string is the whole, or a dot is added to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRename:
    """The version to replace, and the module in which to replace it.

    Attributes:
        old: the version that the source is written for, such as `v1`.
        new: the version that replaces it.
        package: the dotted package that the file lies in, in parts: `("Api", "v1", "User")`.
        keep_names: keep the old name of `from Api import v1` in the module (`as v1`), because
            another file imports that name from this one.
    """

    old: str
    new: str
    package: tuple[str, ...]
    keep_names: bool = False


def rewrite_imports(source: bytes, rename: VersionRename) -> tuple[bytes, int]:
    """Replace the version in the imports of `source` and in the code that uses them.

    Args:
        source: a Python file that compiles.
        rename: the old and the new version.

    Returns:
        The new source, and how many places changed.

    Raises:
        SourceError: libcst cannot parse the file, or its encoding does not round-trip.

    Source: interface specification, 'Versioning': the new version uses its own local services.
    """
    wrapper = parse_with_metadata(source)
    edits = sorted(set(_VersionEditCollector(wrapper, rename).collect_edits()))
    return apply_edits(source, edits), len(edits)


def find_version_lines(source: bytes, rename: VersionRename) -> tuple[int, ...]:
    """Return the lines that `rewrite_imports` would change.

    Raises:
        SourceError: as `rewrite_imports`.
    """
    wrapper = parse_with_metadata(source)
    data = wrapper.module.code.encode()
    starts = {start for start, _, _ in _VersionEditCollector(wrapper, rename).collect_edits()}
    return tuple(sorted({data.count(b"\n", 0, start) + 1 for start in starts}))


def parse_with_metadata(source: bytes) -> MetadataWrapper:
    """Parse a file so that positions are those in its text as UTF-8.

    Raises:
        SourceError: as `rewrite_imports`.
    """
    text, _ = _decode_source(source)
    # libcst drops a lone carriage return; a line feed instead keeps every position.
    readable = re.sub(r"\r(?!\n)", "\n", text)
    try:
        wrapper = MetadataWrapper(libcst.parse_module(readable), unsafe_skip_copy=True)
    except libcst.ParserSyntaxError as error:
        raise SourceError(f"line {error.raw_line}: {error.message}") from error
    if wrapper.module.code != readable:
        raise SourceError("line 1: the file does not survive being read; reformat it")
    return wrapper


def apply_edits(source: bytes, edits: Sequence[Edit]) -> bytes:
    """Return a source with parts of it replaced, in its own encoding.

    Args:
        edits: start, end and text of each, sorted; positions in the text as UTF-8.
    """
    text, encoding = _decode_source(source)
    data = text.encode()
    for start, end, replacement in reversed(edits):
        data = data[:start] + replacement.encode() + data[end:]
    body = data.decode().encode(encoding)
    return _BOM + body if source.startswith(_BOM) else body


def _decode_source(source: bytes) -> tuple[str, str]:
    encoding, _ = tokenize.detect_encoding(BytesIO(source).readline)
    encoding = "utf-8" if encoding == "utf-8-sig" else encoding
    body = source.removeprefix(_BOM)
    text = body.decode(encoding)
    if text.encode(encoding) != body:
        raise SourceError(f"line 1: encoding {encoding!r} does not write what it reads; use UTF-8")
    return text, encoding


@dataclass(slots=True)
class _Bindings:
    """Names of one file that refer to `Api` or the version, and the import nodes that bind them."""

    roots: set[str] = field(default_factory=set[str])
    of_root: set[libcst.CSTNode] = field(default_factory=set[libcst.CSTNode])
    of_version: set[libcst.CSTNode] = field(default_factory=set[libcst.CSTNode])
    aliases: list[libcst.ImportAlias] = field(default_factory=list[libcst.ImportAlias])


class _VersionEditCollector(libcst.CSTVisitor):
    """Collects the edits of one file: imports first, then the uses of their names."""

    def __init__(self, wrapper: MetadataWrapper, rename: VersionRename) -> None:
        super().__init__()
        self._rename = rename
        self._module = wrapper.module
        self._spans: Any = wrapper.resolve(ByteSpanPositionProvider)
        self._scopes: Any = wrapper.resolve(ScopeProvider)
        self._parents: Any = wrapper.resolve(ParentNodeProvider)
        # The slowest metadata, resolved only for a call that may import.
        self._qualified: Any = {}
        if any(name.rpartition(".")[2] in wrapper.module.code for name in _IMPORTERS):
            self._qualified = wrapper.resolve(QualifiedNameProvider)
        self._bound = _Bindings()
        self._names: list[libcst.Name] = []
        self._calls: list[libcst.Call] = []
        self._annotations: list[libcst.SimpleString] = []
        self._declares_global = False
        self._found: list[Edit] = []

    def collect_edits(self) -> Iterator[Edit]:
        self._module.visit(self)
        renames = self._can_bind_new_version_name()
        for alias in self._bound.aliases:
            new = self._rename.new if renames else f"{self._rename.new} as {self._rename.old}"
            yield self._make_edit(alias.name, new)
        for name in self._names:
            yield from self._edit_use(name, renames=renames)
        for call in self._calls:
            yield from self._edit_import_call(call)
        for string in self._annotations:
            yield from self._edit_annotation(string, renames=renames)
        yield from self._found

    # Visiting

    def visit_Import(self, node: libcst.Import) -> bool:
        for alias in node.names:
            parts = split_dotted_name(alias.name)
            if parts[0].value != _API:
                continue
            if len(parts) > 1 and parts[1].value == self._rename.old:
                self._found.append(self._make_edit(parts[1], self._rename.new))
            if alias.asname is None or len(parts) == 1:
                self._bound.roots.add(alias.evaluated_alias or _API)
                self._bound.of_root.add(node)
        return False

    def visit_ImportFrom(self, node: libcst.ImportFrom) -> bool:
        parts = split_dotted_name(node.module) if node.module else []
        above = self._resolve_relative_package(len(node.relative))
        if above is None:
            return False
        absolute = (*above, *(part.value for part in parts))
        if absolute[:2] == (_API, self._rename.old) and len(above) < 2:
            self._found.append(self._make_edit(parts[1 - len(above)], self._rename.new))
        if absolute == (_API,) and not isinstance(node.names, libcst.ImportStar):
            self._record_version_import(node, node.names)
        return False

    def _record_version_import(
        self, node: libcst.ImportFrom, aliases: Sequence[libcst.ImportAlias]
    ) -> None:
        for alias in aliases:
            if alias.evaluated_name != self._rename.old:
                continue
            if alias.asname is None:
                self._bound.aliases.append(alias)
                self._bound.of_version.add(node)
            else:
                self._found.append(self._make_edit(alias.name, self._rename.new))

    def visit_Name(self, node: libcst.Name) -> None:
        self._names.append(node)

    def visit_Call(self, node: libcst.Call) -> None:
        self._calls.append(node)

    def visit_Global(self, node: libcst.Global) -> None:
        names = {item.name.value for item in node.names}
        self._declares_global |= bool(names & {self._rename.old, self._rename.new})

    def visit_Annotation(self, node: libcst.Annotation) -> None:
        self._annotations.extend(_find_type_strings(node.annotation))

    # Deciding

    def _can_bind_new_version_name(self) -> bool:
        """Return True if `from Api import v1` can bind the new name without a conflict."""
        if not self._bound.aliases:
            return False
        scopes = {scope for scope in self._scopes.values() if scope is not None}
        ours = all(
            self._binds_version(assignment)
            for scope in scopes
            if any(map(self._binds_version, scope.assignments))
            for assignment in scope[self._rename.old]
        )
        new = self._rename.new
        taken = any(new in scope.assignments for scope in scopes) or any(
            name.value == new and not self._is_attribute_or_keyword_name(name)
            for name in self._names
        )
        exported = any(name.value == "__all__" for name in self._names)
        blocked = taken or exported or self._declares_global or self._rename.keep_names
        return ours and not blocked

    def _binds_version(self, assignment: Any) -> bool:
        node = getattr(assignment, "node", None)
        return assignment.name == self._rename.old and node in self._bound.of_version

    def _is_attribute_or_keyword_name(self, name: libcst.Name) -> bool:
        """Return True if a name is only an attribute or the keyword of an argument."""
        parent = self._parents.get(name)
        return (isinstance(parent, libcst.Attribute) and parent.attr is name) or (
            isinstance(parent, libcst.Arg) and parent.keyword is name
        )

    def _edit_use(self, name: libcst.Name, *, renames: bool) -> Iterator[Edit]:
        if self._is_attribute_or_keyword_name(name):
            return
        if name.value in self._bound.roots:
            parent = self._parents.get(name)
            if (
                isinstance(parent, libcst.Attribute)
                and parent.attr.value == self._rename.old
                and self._is_bound_by(name, self._bound.of_root)
            ):
                yield self._make_edit(parent.attr, self._rename.new)
        elif (
            renames
            and name.value == self._rename.old
            and self._is_bound_by(name, self._bound.of_version)
        ):
            yield self._make_edit(name, self._rename.new)

    def _is_bound_by(self, name: libcst.Name, imports: set[libcst.CSTNode]) -> bool:
        """Return True if the nearest scope that binds a name binds it by one of these imports."""
        scope: Scope | None = self._scopes.get(name)
        while scope is not None:
            own, below = name.value, f"{name.value}."
            bound = [a for a in scope.assignments if a.name == own or a.name.startswith(below)]
            if bound:
                return any(getattr(assignment, "node", None) in imports for assignment in bound)
            scope = scope.parent if scope.parent is not scope else None
        return False

    def _edit_import_call(self, call: libcst.Call) -> Iterator[Edit]:
        found: Any = self._qualified.get(call.func)
        names: Any = found() if callable(found) else found  # libcst answers lazily
        if not any(name.name in _IMPORTERS for name in names or ()):
            return
        for position, argument in enumerate(call.args):
            keyword = argument.keyword.value if argument.keyword else None
            if keyword in ("name", "package") or (keyword is None and position < 2):
                yield from self._edit_module_text(argument.value)

    def _edit_module_text(self, text: libcst.BaseExpression) -> Iterator[Edit]:
        """Edit the version in a string that is a module name, or its start."""
        node = find_leftmost_operand(text)
        span = self._spans.get(node)
        if span is None or not isinstance(
            node, libcst.SimpleString | libcst.ConcatenatedString | libcst.FormattedString
        ):
            return
        source = self._module.code_for_node(node)
        match = re.match(
            rf"\w{{0,2}}(\"\"\"|'''|\"|')Api\.(?P<version>{self._rename.old})(\.|\1)", source
        )
        rest = self._module.code_for_node(text).partition(source)[2]
        # `"Api.v1" + n` may be version 12
        if match and (match[3] == "." or _ends_version(rest)):
            start = span.start + len(source[: match.start("version")].encode())
            yield start, start + len(self._rename.old), self._rename.new

    def _edit_annotation(self, node: libcst.SimpleString, *, renames: bool) -> Iterator[Edit]:
        source = self._module.code_for_node(node)
        start = self._spans[node].start
        old = self._rename.old
        patterns = [
            rf"(?<![\w.]){re.escape(root)}\s*\.\s*({old})(?!\w)" for root in self._bound.roots
        ]
        if renames:
            patterns.append(rf"(?<![\w.])({old})(?!\w)")
        for pattern in patterns:
            for match in re.finditer(pattern, source):
                at = start + len(source[: match.start(1)].encode())
                yield at, at + len(old), self._rename.new

    def _resolve_relative_package(self, dots: int) -> tuple[str, ...] | None:
        """Return the package that the dots of a relative import denote; None above the project."""
        if dots == 0:
            return ()
        kept = len(self._rename.package) - dots + 1
        return self._rename.package[:kept] if kept > 0 else None

    def _make_edit(self, node: libcst.CSTNode, new: str) -> Edit:
        span = self._spans[node]
        return span.start, span.start + span.length, new


def split_dotted_name(node: libcst.BaseExpression) -> list[libcst.Name]:
    """Return the names of a dotted name; none for another expression."""
    names: list[libcst.Name] = []
    while isinstance(node, libcst.Attribute):
        names.insert(0, node.attr)
        node = node.value
    return [node, *names] if isinstance(node, libcst.Name) else names


def find_leftmost_operand(node: libcst.BaseExpression) -> libcst.BaseExpression:
    """Return the start of a text: `"Api.v1."` in `"Api.v1." + x` or `"Api.v1.{}".format(x)`."""
    while True:
        if isinstance(node, libcst.BinaryOperation | libcst.ConcatenatedString):
            node = node.left
        elif isinstance(node, libcst.Call) and isinstance(node.func, libcst.Attribute):
            node = node.func.value
        else:
            return node


def _find_type_strings(node: libcst.CSTNode) -> Iterator[libcst.SimpleString]:
    """Yield the strings in an annotation that are types; those in `Literal[...]` are values."""
    if isinstance(node, libcst.SimpleString):
        yield node
    elif isinstance(node, libcst.Subscript) and split_dotted_name(node.value)[-1:]:
        last = split_dotted_name(node.value)[-1].value
        kept = {"Literal": 0, "Annotated": 1}.get(last, len(node.slice))
        for element in node.slice[:kept]:
            yield from _find_type_strings(element)
    elif not isinstance(node, libcst.Call):
        for child in node.children:
            yield from _find_type_strings(child)
