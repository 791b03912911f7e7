"""The code of a migration file in the form that its hash covers: what changes no run is taken out.

| In the file | In the form |
|---|---|
| `RunPython(fill, elidable=True)`, `RunSQL("...", when="contract")` | without these two keywords |
| `def fill(models: Any, work) -> None: "Fill."` | `def fill(%0, %1):` |
| `for book in books: book.save()` in a function | `for %2 in %1: %2.save()` |
| `if TYPE_CHECKING:` | gone |

A function whose names cannot be followed (`global`, `match`, `locals()`, a class inside, a keyword
of that name in any call of the file) keeps them: such a rename is a change, which is the safe side.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any, cast

_OPERATIONS = frozenset({"RunSQL", "RunPython", "AlterField"})
_WITHOUT_EFFECT = frozenset({"elidable", "when"})
# these see local names as text
_OPAQUE = frozenset({"locals", "vars", "eval", "exec", "dir"})
# most files have nothing that is taken out, and a walk of each would be felt in long histories
_PARTS = re.compile(r"\b(?:def|lambda|for|class|if|pass|elidable|when)\b")
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def parse_normalized_source(text: str) -> ast.Module:
    """Return the syntax tree of a file without the parts that change no run."""
    tree = ast.parse(text)
    # an annotated assignment has no word to search for
    if _PARTS.search(text) or any(isinstance(s, ast.AnnAssign) for s in tree.body):
        tree = _InsignificantCodeRemover().visit(tree)
        tree.body = [s for s in tree.body if not _is_type_checking_block(s)]
        keywords = {k.arg for k in ast.walk(tree) if isinstance(k, ast.keyword) and k.arg}
        # behind _InsignificantCodeRemover: a declaration such as `x: int` would take up a number
        _LocalNameNumberer(keywords).visit(tree)
    return tree


def parse_without_elidable_keyword(text: str) -> ast.Module:
    """Return the syntax tree of a file whose operations have no `elidable`, else as it is."""
    return _InsignificantCodeRemover(frozenset({"elidable"}), annotations=False).visit(
        ast.parse(text)
    )


class _InsignificantCodeRemover(ast.NodeTransformer):
    """Takes out keywords of operations, annotations, docstrings and `pass`."""

    def __init__(
        self, keywords: frozenset[str] = _WITHOUT_EFFECT, *, annotations: bool = True
    ) -> None:
        self._keywords = keywords
        self._annotations = annotations
        self._in_class = False

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if _extract_name(node.func) in _OPERATIONS:
            node.keywords = [k for k in node.keywords if k.arg not in self._keywords]
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        # annotations of a class are its fields, which decorators and bases read
        before, self._in_class = self._in_class, True
        self.generic_visit(node)
        self._in_class = before
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._strip_function_annotations(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._strip_function_annotations(node)

    def _strip_function_annotations(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        before, self._in_class = self._in_class, False
        self.generic_visit(node)
        self._in_class = before
        if self._annotations:
            node.returns = None
            for argument in _list_arguments(node.args):
                argument.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        self.generic_visit(node)
        if self._in_class or not self._annotations:
            return node
        if node.value is None:
            return None
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        self.generic_visit(node)
        without_effect = self._annotations and isinstance(node.value, ast.Constant)
        return None if without_effect else node

    def visit_Pass(self, node: ast.Pass) -> ast.AST | None:
        return None if self._annotations else node


class _LocalNameNumberer(ast.NodeTransformer):
    """Replaces local names of functions and comprehensions by numbers in the order of their use."""

    def __init__(self, keywords: set[str]) -> None:
        self._keywords = keywords  # parameters may be given by these
        self._scopes: list[dict[str, str]] = []
        self._count = 0

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._find_new_name(node.id)
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        if node.name:
            node.name = self._find_new_name(node.name)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._rename_function_and_locals(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._rename_function_and_locals(node)

    def _rename_function_and_locals(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        node.decorator_list = self._visit_all(node.decorator_list)
        node.name = self._find_new_name(node.name)
        self._rename_parameters_and_locals(node)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self._rename_parameters_and_locals(node)
        return node

    def _rename_parameters_and_locals(self, node: _Function) -> None:
        given = node.args
        # defaults are evaluated outside, where the parameters do not exist
        given.defaults = self._visit_all(given.defaults)
        given.kw_defaults = [d and self.visit(d) for d in given.kw_defaults]
        self._scopes.append(
            self._assign_numbered_names(_find_renamable_locals(node, self._keywords))
        )
        for argument in _list_arguments(given):
            argument.arg = self._find_new_name(argument.arg)
        if isinstance(node, ast.Lambda):
            node.body = self.visit(node.body)
        else:
            node.body = self._visit_all(node.body)
        self._scopes.pop()

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        return self._rename_comprehension(node)

    def visit_SetComp(self, node: ast.SetComp) -> ast.AST:
        return self._rename_comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> ast.AST:
        return self._rename_comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        return self._rename_comprehension(node)

    def _rename_comprehension(self, node: _Comprehension) -> ast.AST:
        first = node.generators[0]
        first.iter = self.visit(first.iter)  # evaluated outside, before its names exist
        targets = [name for g in node.generators for name in _find_bound_names(g.target)]
        walrus = any(isinstance(n, ast.NamedExpr) for n in ast.walk(node))
        self._scopes.append({} if walrus else self._assign_numbered_names(targets))
        for place, generator in enumerate(node.generators):
            generator.target = self.visit(generator.target)
            if place:
                generator.iter = self.visit(generator.iter)
            generator.ifs = self._visit_all(generator.ifs)
        if isinstance(node, ast.DictComp):
            node.key, node.value = self.visit(node.key), self.visit(node.value)
        else:
            node.elt = self.visit(node.elt)
        self._scopes.pop()
        return node

    def _visit_all(self, nodes: Sequence[Any]) -> list[Any]:
        return [self.visit(node) for node in nodes]

    def _assign_numbered_names(self, names: Sequence[str]) -> dict[str, str]:
        made: dict[str, str] = {}
        for name in dict.fromkeys(names):
            made[name] = f"%{self._count}"
            self._count += 1
        return made

    def _find_new_name(self, name: str) -> str:
        # the innermost scope first; a name that none binds is global, and is kept
        return next((s[name] for s in reversed(self._scopes) if name in s), name)


def _find_renamable_locals(node: _Function, keywords: set[str]) -> list[str]:
    """The names that a function binds, in their order; none where they cannot be followed."""
    parameters = [argument.arg for argument in _list_arguments(node.args)]
    body = cast("list[ast.AST]", node.body if isinstance(node.body, list) else [node.body])
    bound, kept = list(parameters), set(keywords) & set(parameters)
    for inner in body:
        for part in ast.walk(inner):
            if isinstance(part, (ast.Global, ast.Nonlocal, ast.Match, ast.ClassDef)) or (
                isinstance(part, ast.Name) and part.id in _OPAQUE
            ):
                return []
            if isinstance(part, ast.alias):
                kept.add((part.asname or part.name).partition(".")[0])
    bound += [name for inner in body for name in _find_bound_names(inner)]
    return [name for name in bound if name not in kept]


def _find_bound_names(node: ast.AST) -> Iterator[str]:
    """The names that a statement of a function binds in it, not those of functions inside."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield node.name
        return
    if isinstance(node, ast.Lambda):
        return
    if isinstance(node, _Comprehension):
        yield from (n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
        return
    if _is_assigned_name(node):
        yield cast("ast.Name", node).id
    if isinstance(node, ast.ExceptHandler) and node.name:
        yield node.name
    for child in ast.iter_child_nodes(node):
        yield from _find_bound_names(child)


def _is_assigned_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _list_arguments(given: ast.arguments) -> list[ast.arg]:
    extra = [a for a in (given.vararg, given.kwarg) if a is not None]
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *extra]


def _extract_name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_type_checking_block(statement: ast.stmt) -> bool:
    """True for `if TYPE_CHECKING:` without another branch."""
    if not isinstance(statement, ast.If) or statement.orelse:
        return False
    return isinstance(statement.test, (ast.Name, ast.Attribute)) and (
        _extract_name(statement.test) == "TYPE_CHECKING"
    )
