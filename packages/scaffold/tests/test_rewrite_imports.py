"""Version-qualified imports are rewritten, and no other byte changes (S-126)."""

import pytest
from hypothesis import given, settings, strategies as st

from treefold_scaffold import ScaffoldError
from treefold_scaffold._rewrite_imports import VersionRename, rewrite_imports

PACKAGE = ("Api", "v1", "User")


def moved(source: str, *, keep_names: bool = False) -> str:
    rename = VersionRename(old="v1", new="v2", package=PACKAGE, keep_names=keep_names)
    return rewrite_imports(source.encode(), rename)[0].decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from Api.v1 import x", "from Api.v2 import x"),
        ("from Api.v1.User.Services import x", "from Api.v2.User.Services import x"),
        ("from  Api . v1 .User  import (\n    x, # Api.v1\n)", None),
        ("import Api.v1.User", "import Api.v2.User"),
        ("import Api.v1", "import Api.v2"),
        ("import os, Api.v1.a as a, Api.v1.b", "import os, Api.v2.a as a, Api.v2.b"),
        ("import Api.v1.User\nx = Api.v1.User.y", "import Api.v2.User\nx = Api.v2.User.y"),
        ("import Api.v1.a\nx = Api.v1.b", "import Api.v2.a\nx = Api.v2.b"),
        ("import Api\nx = Api.v1.y", "import Api\nx = Api.v2.y"),
        ("import Api as A\nx = A.v1.y", "import Api as A\nx = A.v2.y"),
        ("def f():\n    import Api.v1.a\n    return Api.v1.a.b()", None),
        ("import Api.v1.a\n@Api.v1.a.d\nclass C(Api.v1.a.B): ...", None),
        ("from Api import v1\nx = v1.User", "from Api import v2\nx = v2.User"),
        ("from Api import v1 as old\nold.x", "from Api import v2 as old\nold.x"),
        ("from Api import v3, v1\nv1.x(v3)", "from Api import v3, v2\nv2.x(v3)"),
        ("from ...v1.User import x", "from ...v2.User import x"),
        ("from ... import v1\nv1.x", "from ... import v2\nv2.x"),
        ("import importlib\nimportlib.import_module('Api.v1')", None),
        ("import importlib as i\ni.import_module('Api.v1.a.[id].Get')", None),
        ("from importlib import import_module\nimport_module('Api.v1.a')", None),
        ("from importlib import import_module as m\nm(name='Api.v1.a')", None),
        ("import importlib\nimportlib.import_module('.x', package='Api.v1.a')", None),
        ("import importlib\nimportlib.import_module('Api.v1.' + n)", None),
        ("import importlib\nimportlib.import_module(f'Api.v1.{n}')", None),
        ("import importlib\nimportlib.import_module('Api.v1.%s' % n)", None),
        ("import importlib\nimportlib.import_module('Api.v1.{}'.format(n))", None),
        ("import importlib\nimportlib.import_module('Api.v1' '.a')", None),
        ("import importlib\nimportlib.import_module('Api.v1' f'.{n}')", None),
        ("import importlib\nimportlib.import_module('Api.v1' + '.a.' + n)", None),
        ("import importlib\nimportlib.import_module(('Api.v1' +\n  # and\n  '.a'))", None),
        ("x = __import__('Api.v1.a', fromlist=['b'])", None),
        ("if TYPE_CHECKING:\n    from Api.v1.a import B\n", None),
        ("from __future__ import annotations\nimport Api.v1.a\nx: Api.v1.a.B", None),
        ("import Api.v1.a\nx: 'list[Api.v1.a.B]'", None),
        ("from Api import v1\ndef f(x: 'v1.a') -> 'v1.b': ...", None),
        ("try:\n\tfrom Api.v1.a import b\nexcept ImportError:\n\tb = None", None),
    ],
)
def test_what_means_the_old_version_means_the_new_one(before: str, after: str | None):
    """Where every `v1` is code that means the version, replacing all of them is the expectation."""
    expected = (
        before.replace("v1", "v2").replace("# Api.v2", "# Api.v1") if after is None else after
    )
    assert moved(before) == expected


@pytest.mark.parametrize(
    "source",
    [
        "# from Api.v1 import x",
        '"""import Api.v1"""',
        "x = 'Api.v1.User'",
        "print('Api.v1')",
        "from .Services.v1 import x",
        "from . import v1",
        "from .. import v1",
        "from ..v1 import x",
        "from Apis.v1 import x",
        "from Api.v10 import x",
        "from Api.v3.v1 import x",
        "import Api.v10.a\nx = Api.v10.v1",
        "import other\nx = other.Api.v1",
        "import Api.v3\ndef f(Api):\n    return Api.v1",
        "v1 = 3\nx = v1 + 1",
        "x.import_module('Api.v1')",
        "def import_module(x): ...\nimport_module('Api.v1')",
        "import importlib\nimportlib.reload('Api.v1')",
        "import importlib\nimportlib.import_module(f'Api.v1{n}.a')",
        "import importlib\nimportlib.import_module(f'Api.v1' f'{n}.a')",
        "import importlib\nimportlib.import_module('Api.v1' + n)",
        "import importlib\nimportlib.import_module('Api.v1{}.a'.format(n))",
        "import importlib\nimportlib.import_module('Api.v1%s.a' % n)",
        "import importlib\nimportlib.import_module(other, 'x', 'Api.v1')",
        "x: Literal['Api.v1']",
        "import Api.v3\nx: Annotated[int, 'Api.v1']",
        "from ....... import v1",
    ],
)
def test_everything_else_stays(source: str):
    assert moved(source) == source


@pytest.mark.parametrize(
    "source",
    [
        "from Api import v1\nv2 = 3\nx = v1",
        "from Api import v1\ndef f(v2):\n    return v1.x",
        "try:\n    from Api import v1\nexcept ImportError:\n    v1 = None\nx = v1",
        "from Api import v1\ndef f():\n    global v1\n    v1 = 3",
        "from Api import v1\n__all__ = ['v1']",
    ],
)
def test_a_name_that_cannot_change_keeps_its_spelling(source: str):
    assert moved(source) == source.replace("from Api import v1", "from Api import v2 as v1")


def test_a_name_that_another_file_imports_keeps_its_spelling():
    source = "from Api import v1\nx = v1.a"
    assert moved(source, keep_names=True) == "from Api import v2 as v1\nx = v1.a"


def test_a_name_of_another_scope_is_another_name():
    source = "from Api import v1\ndef f(v1):\n    return v1\nx = v1.f(v1=1).v1"
    expected = "from Api import v2\ndef f(v1):\n    return v1\nx = v2.f(v1=1).v1"
    assert moved(source) == expected


def test_names_are_counted():
    rename = VersionRename(old="v1", new="v2", package=PACKAGE)
    assert rewrite_imports(b"import Api.v1.a\nApi.v1.a\n", rename)[1] == 2


@pytest.mark.parametrize(
    "source",
    [
        "\ufefffrom Api.v1 import x\r\n# \xe9\r\n".encode(),
        "# -*- coding: latin-1 -*-\nx = '\xe9'\nfrom Api.v1 import x  # \xfc\n".encode("latin-1"),
        "# vim: set fileencoding=cp1252 :\nfrom Api.v1 import x\ny = '\u20ac'".encode("cp1252"),
        b"from Api.v1 import x\r\n\r\nif x:\r\n\ty = 1\r\n\x0c\r\nz = 2",
        b"x = 1\rfrom Api.v1 import x\r",
        b"from Api.v1 import x  ;  y=1 \\\n  + 2   \n\n\n\n",
        "s = 'Grüße 🎈 v1'; from Api.v1 import x; é = x # 🎈 Api.v1".encode(),
    ],
)
def test_encoding_line_ends_and_layout_survive(source: bytes):
    done, places = rewrite_imports(source, VersionRename(old="v1", new="v2", package=PACKAGE))
    assert (done, places) == (source.replace(b"from Api.v1", b"from Api.v2"), 1)


def test_syntax_that_libcst_refuses_is_named_with_its_line():
    with pytest.raises(ScaffoldError, match=r"^line 2: "):
        moved("import Api.v1\nx = = 1\n")


LINES = st.sampled_from(
    [
        "from Api.v1.User.Services import a{n}",
        "import Api.v1.User.b{n}",
        "import Api.v1.User.c{n} as c{n}",
        "print(Api.v1.User.b{n})",
        "from Api import v1",
        "print(v1.x{n}, 'Api.v7', v1)",
        "from Api import v1 as w{n}",
        "from ...v1.User import d{n}",
        "x{n}: 'Api.v1.User' = importlib.import_module('Api.v1.e{n}')",
        "# Api.v3.User {n} \u20ac",
        "s{n} = 'from Api.v3 import x'",
        "def f{n}(Api, q): return Api.v3, q.v1.x",
        "if x{n}:\n\timport Api.v1.g{n}\n\tApi.v1.g{n}()",
        "from .Services.h import i{n}",
        "",
    ]
)


@settings(deadline=None)  # libcst is slow on a busy machine
@given(
    st.lists(st.tuples(LINES, st.integers(0, 99)), max_size=12),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_there_and_back_is_the_same_file(lines: list[tuple[str, int]], newline: str, ends: bool):
    text = "import importlib, Api\n" + "\n".join(line.format(n=n) for line, n in lines)
    source = (text + "\n" * ends).replace("\n", newline).encode()
    there, places = rewrite_imports(source, VersionRename(old="v1", new="v2", package=PACKAGE))
    back, same = rewrite_imports(
        there, VersionRename(old="v2", new="v1", package=("Api", "v2", "User"))
    )
    assert (back, same) == (source, places)
