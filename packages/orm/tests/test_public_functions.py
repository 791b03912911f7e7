"""`treefold_orm.functions` holds each function of `treefold_orm`, the same object."""

from __future__ import annotations

import inspect
from typing import Any

import treefold_orm
from treefold_orm import functions

MODULES: dict[str, str] = vars(treefold_orm)["_MODULES"]


def test_the_module_of_functions_has_all_of_them() -> None:
    listed = {
        name
        for module, names in MODULES.items()
        if module.startswith("_functions.")
        for name in names.split()
    }
    # pytest adds names such as `@py_builtins` where it rewrites the module's asserts
    public: dict[str, Any] = {
        name: value for name, value in vars(functions).items() if name[0].isalpha()
    }
    assert public.keys() == listed
    assert [n for n, f in public.items() if f is not getattr(treefold_orm, n)] == []
    assert not any(map(inspect.ismodule, public.values()))
