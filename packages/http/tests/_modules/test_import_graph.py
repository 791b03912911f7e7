"""What a module imports, read from its source; what it holds, read from itself."""

from __future__ import annotations

from types import ModuleType

import pytest

from treefold_http._modules.import_graph import (
    find_referenced_modules,
    parse_imports,
    transitive_closure,
)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import Services", {"Services"}),
        ("import Services.mail.smtp", {"Services", "Services.mail", "Services.mail.smtp"}),
        ("import Services.mail as m", {"Services.mail"}),
        ("from Services import mail", {"Services", "Services.mail"}),
        ("from Services.mail import send as s", {"Services.mail", "Services.mail.send"}),
        ("from Services import *", {"Services", "Services.*"}),
        ("from . import near", {"Api.v1.User", "Api.v1.User.near"}),
        ("from .Services.x import y", {"Api.v1.User.Services.x", "Api.v1.User.Services.x.y"}),
        ("from ..Services import x", {"Api.v1.Services", "Api.v1.Services.x"}),
        ("def f():\n    async def g():\n        import late", {"late"}),
        ("class C:\n    import inner", {"inner"}),
        ("try:\n    import fast\nexcept ImportError:\n    import slow", {"fast", "slow"}),
        (
            "import importlib\nx = importlib.import_module('Services.x')",
            {"importlib", "Services.x"},
        ),
        ("x = import_module('.Services.x', __package__)", {"Api.v1.User.Services.x"}),
        ("x = import_module(name)", set[str]()),
        ("x = import_module()", set[str]()),
        ("if TYPE_CHECKING:\n    import a\nelse:\n    import b", {"b"}),
        ("if typing.TYPE_CHECKING:\n    import a", set[str]()),
        ("import a; def", set[str]()),
        ("\0", set[str]()),
        ("x = 'import a'  # import b", set[str]()),
    ],
)
def test_the_names_that_a_source_may_import(source: str, names: set[str]) -> None:
    assert parse_imports(source.encode(), "Api.v1.User") == names


def test_a_module_holds_what_came_by_another_way() -> None:
    class Mailer: ...

    Mailer.__module__ = "Services.mail"
    module = ModuleType("Services")
    module.kind, module.made = Mailer, Mailer()  # type: ignore[attr-defined]
    module.other = ModuleType("Utils")  # type: ignore[attr-defined]
    module.below = ModuleType("Services.below")  # type: ignore[attr-defined]
    held = set(find_referenced_modules(module))

    assert {"Services.mail", "Utils"} <= held
    assert "Services.below" not in held


def test_a_transitive_closure_ends_in_a_circle() -> None:
    assert transitive_closure(["a"], {"a": ["b"], "b": ["c", "a"], "c": ["b"], "d": ["a"]}) == {
        "a",
        "b",
        "c",
    }
