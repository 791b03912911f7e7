"""The written models are executed apart and compared with the migration, before a file is there."""

from __future__ import annotations

import ast
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from treefold_migrations._base.errors import StateError
from treefold_migrations._detect.models import build_models_state
from treefold_migrations._state.schema_state import SchemaState, is_same_state
from treefold_orm import Model, registry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from treefold_orm.schema import Meta

    Registry = Iterable[Meta]

_NAME = "treefold_migrations_baseline"


def check_models_source(source: str, wanted: SchemaState) -> None:
    """Execute the source of models, and compare them.

    Raises `StateError` where it does not lead to the wanted state.
    """
    try:
        _, own = execute_models(source)
        made = build_models_state(own)
    except Exception as error:
        raise StateError(f"The models found cannot be executed, report this: {error}") from error
    if not is_same_state(made, wanted):
        raise StateError("The models found lead to another schema, report this; nothing is written")


def execute_models(source: str) -> tuple[ModuleType, Registry]:
    """Execute the source of models; return their module and a registry that holds them alone."""
    # apart from the models of the application, which may have the same names
    own = type(registry)()
    meta = type("Meta", (), {"abstract": True})
    body: dict[str, Any] = {"__module__": _NAME, "_registry": own, "_space": "", "Meta": meta}
    module = ModuleType(_NAME)
    module.__dict__["Model"] = type("Model", (Model,), body)
    # annotations of a class are evaluated in the module that its __module__ names
    sys.modules[_NAME] = module
    try:
        code: Any = compile(_parse_without_model_import(source), f"<{_NAME}>", "exec")
        exec(code, module.__dict__)  # noqa: S102 - source of our own, with every name and text quoted
    finally:
        del sys.modules[_NAME]
    return module, own


def _parse_without_model_import(source: str) -> ast.Module:
    """The source without its import of `Model`, which is given to it."""
    tree = ast.parse(source)
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and statement.module == "treefold_orm":
            statement.names = [name for name in statement.names if name.name != "Model"]
    return tree
