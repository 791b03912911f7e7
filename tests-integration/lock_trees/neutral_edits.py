"""Edits of the sample that change nothing for clients: each takes the root of a copy.

An edit that finds nothing to change fails, so that none becomes empty when the sample changes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

Edit = Callable[[Path], None]
EDITS: dict[str, Edit] = {}
ORDER_POST = "Api/v1/Order/Post.py"
BOOK = "Api/v2/Book/[isbn]/Get.py"
LIST = "Api/v1/Book/Get.py"


def define(name: str) -> Callable[[Edit], Edit]:
    """Register an edit under the words that a failing test shows."""

    def register(edit: Edit) -> Edit:
        EDITS[name] = edit
        return edit

    return register


def replace_text(root: Path, file: str, *pairs: tuple[str, str]) -> None:
    """Replace each text of a file by another; raises if a text is not there."""
    path = root / file
    text = path.read_text()
    for old, new in pairs:
        if old not in text:
            raise LookupError(f"{file} has no {old!r}")
        text = text.replace(old, new)
    path.write_text(text)


def rewrite_modules(root: Path, change: Callable[[str], str], folder: str = "Api") -> None:
    """Change the text of all modules in a folder; raises if none changes."""
    changed = 0
    for path in sorted((root / folder).rglob("*.py")):
        text = path.read_text()
        if (new := change(text)) != text:
            path.write_text(new)
            changed += 1
    if not changed:
        raise LookupError(f"No module of {folder} was changed")


def replace(name: str, file: str, *pairs: tuple[str, str]) -> None:
    """Define an edit that replaces texts of one file."""
    EDITS[name] = lambda root: replace_text(root, file, *pairs)


def rewrite(name: str, change: Callable[[str], str], folder: str = "Api") -> None:
    """Define an edit of all modules of a folder."""
    EDITS[name] = lambda root: rewrite_modules(root, change, folder)


def write_file(name: str, file: str, text: str) -> None:
    """Define an edit that adds a file."""

    def write(root: Path) -> None:
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    EDITS[name] = write


rewrite("comment above each module", lambda text: f"# reviewed\n{text}" if text else text)
rewrite("comment below each module", lambda text: f"{text}\n\n# the end\n" if text else text)
rewrite(
    "docstring of each module",
    lambda text: text if not text or text.startswith('"""') else f'"""A module."""\n\n{text}',
)
rewrite("wide lines, in models", lambda text: ast.unparse(ast.parse(text)) + "\n", "Models")
rewrite(
    "annotations as texts",
    lambda text: text if "__future__" in text else f"from __future__ import annotations\n\n{text}",
)
rewrite(
    "long form of optional types",
    lambda text: _use_typing(text, r"\b(\w+) \| None", r"Optional[\1]", "Optional"),
)
rewrite("long form of lists", lambda text: _use_typing(text, r"\blist\[", "List[", "List"))
rewrite("long form of dictionaries", lambda text: _use_typing(text, r"\bdict\[", "Dict[", "Dict"))
rewrite(
    "long form of unions",
    lambda text: _use_typing(text, r"\bstr \| int\b", "Union[str, int]", "Union"),
)
rewrite("long form of tuples", lambda text: _use_typing(text, r"-> tuple\[", "-> Tuple[", "Tuple"))
rewrite("imports in another order", lambda text: _reverse_imports(text))
rewrite("members in another order", lambda text: _reverse_members(text))
rewrite(
    "docstrings of types",
    lambda text: re.sub(r"(class \w+\(TypedDict\):\n)", r'\1    """A type."""\n\n', text),
)
rewrite(
    "typing by its module",
    lambda text: (
        "import typing\n" + text.replace("(TypedDict)", "(typing.TypedDict)")
        if "(TypedDict)" in text
        else text
    ),
)
rewrite(
    "log lines in services",
    lambda text: (
        text + "\nimport logging\n\nlogging.getLogger(__name__).debug('loaded')\n" if text else text
    ),
    "Services",
)

replace("local variable", LIST, ("found", "matching"), ("shown", "first"))
replace("local variable of a comprehension", "Api/v1/User/Get.py", ("user", "person"))
replace("status text", "Api/v1/User/[id]/Get.py", ("There is no user {id}", "Nobody is {id}"))
replace(
    "headers of an error",
    "Api/v1/Session/Post.py",
    ('headers={"WWW-Authenticate": "Session"}', "headers={}"),
)
replace("private function", "Api/v1/Book/Export/Get.py", ("lines", "yield_rows"))
replace(
    "private function of a local service",
    "Api/v1/User/Post.py",
    ("import hash_password", "import hash_password as _hash"),
    ("await hash_password", "await _hash"),
)
replace(
    "early return",
    "Api/v1/Cover/[isbn]/Get.py",
    ("    return cover.image", "    found = cover.image\n    return found"),
)
replace("type of a local value", BOOK, ("    book = await", "    book: dict | None = await"))
replace("query of a handler", LIST, ("b.cents / 100", "round(b.cents * 0.01, 2)"))
replace("plain function for an asynchronous one", "Api/v1/Health/Get.py", ("async def", "def"))
replace("positional only parameters", "Api/v1/Cover/[isbn]/Get.py", ("isbn: str)", "isbn: str, /)"))
replace("parameters by name only", LIST, ("author: str", "*, author: str"))
replace(
    "order of parameters",
    LIST,
    ("author: str | None = None, limit: int = 20", "limit: int = 20, author: str | None = None"),
)
replace(
    "name of a dependency's parameter",
    "Api/v1/Order/[id]/Get.py",
    ("user: User =", "buyer: User ="),
    ("user=user", "user=buyer"),
)
replace(
    "parameter by a marker",
    "Api/v1/User/Me/Get.py",
    ("user: User = Depends(current_user)", "user: Annotated[User, Depends(current_user)]"),
    ("from Models", "from typing import Annotated\n\nfrom Models"),
)
replace(
    "order of the models",
    "Models/people.py",
    ("from typing import TypedDict\n", "from typing import TypedDict\n\nCHARACTERS = 80\n"),
    ("max_length=80", "max_length=CHARACTERS"),
)
replace(
    "column that no answer has",
    "Models/people.py",
    ("    email =", "    nickname = fields.CharField(max_length=80, default='')\n    email ="),
)
replace("work of a middleware", "Middleware/__init__.py", ('"open"', '"closed"'))
replace("hook", "hooks.py", ("the shop is open", "good morning"))

write_file("test", "Tests/test_health.py", "def test_it() -> None:\n    assert 1 + 1 == 2\n")
write_file("helper module that nothing imports", "Services/_private.py", "VALUE = 1\n")
write_file(
    "utility with types",
    "Utils/money.py",
    "class Listed:\n    price: int\n\n\nclass Detail:\n    pass\n",
)
write_file("notes beside the handlers", "Api/v1/Book/NOTES.md", "# Books\n")
write_file("data beside the project", "data/books.json", "[]\n")


@define("function above the handler moved to a service")
def move_function(root: Path) -> None:
    text = (root / "Api/v1/Book/Export/Get.py").read_text()
    start, end = text.index("async def lines"), text.index("async def handler")
    (root / "Services/rows.py").write_text(
        f"from Models.catalogue import Book\n\n\n{text[start:end].rstrip()}\n"
    )
    moved = text[:start].replace(
        "from Models.catalogue import Book", "from Services.rows import lines"
    )
    (root / "Api/v1/Book/Export/Get.py").write_text(moved + text[end:])


@define("helper below the handler")
def move_helper_down(root: Path) -> None:
    path = root / "Api/v1/Book/[isbn]/Review/Get.py"
    text = path.read_text()
    start, end = text.index("def of_the_book"), text.index("@cached")
    helper = text[start:end]
    text = text[:start] + text[end:] + "\n\n" + helper.rstrip() + "\n"
    path.write_text(text.replace("tags=of_the_book", "tags=lambda request: of_the_book(request)"))


@define("service renamed")
def rename_service(root: Path) -> None:
    (root / "Services/shop.py").rename(root / "Services/orders.py")
    replace_text(
        root,
        ORDER_POST,
        ("import news, shop", "import news, orders"),
        ("shop.place", "orders.place"),
    )


@define("module split into two")
def split_module(root: Path) -> None:
    text = (root / "Services/accounts.py").read_text()
    start = text.index("async def find")
    (root / "Services/finding.py").write_text(
        f"from Models.people import User\n\n\n{text[start : text.index('signed_in')].rstrip()}\n"
    )
    head = text[:start].replace(
        "from treefold import", "from Services.finding import find\nfrom treefold import"
    )
    (root / "Services/accounts.py").write_text(head + text[text.index("signed_in") :])


@define("service as a package")
def make_package(root: Path) -> None:
    (root / "Services/news").mkdir()
    (root / "Services/news.py").rename(root / "Services/news/__init__.py")


@define("types of an answer moved to a service")
def move_types(root: Path) -> None:
    text = (root / BOOK).read_text()
    start, end = text.index("class Reviews"), text.index("async def handler")
    types = text[start:end].rstrip()
    (root / "Api/v2/Book/Services/shapes.py").write_text(
        f"from typing import TypedDict\n\n\n{types}\n"
    )
    head = text[:start].replace("from typing import TypedDict\n\n", "")
    head = head.replace("from ..Services", "from ..Services.shapes import Detail\nfrom ..Services")
    (root / BOOK).write_text(head + text[end:])


@define("handler wrapped by a decorator")
def decorate_handler(root: Path) -> None:
    (root / "Services/timing.py").write_text(
        "import functools\n\n\n"
        "def timed(function):\n"
        "    @functools.wraps(function)\n"
        "    async def run(*args, **kwargs):\n"
        "        return await function(*args, **kwargs)\n\n"
        "    return run\n"
    )
    replace_text(
        root,
        LIST,
        ("from Models", "from Services.timing import timed\nfrom Models"),
        ("async def handler", "@timed\nasync def handler"),
    )


@define("handlers saved in another order")
def touch_in_another_order(root: Path) -> None:
    for number, path in enumerate(sorted((root / "Api").rglob("*.py"), reverse=True)):
        text = path.read_text()
        path.unlink()
        path.write_text(text + "\n" * (number % 3))


# edits of whole texts come last: those before them look for texts as they were written
rewrite("none before the type", lambda text: re.sub(r"\b(\w+) \| None", r"None | \1", text))
rewrite("blank lines at the top", lambda text: f"\n\n\n{text}")
rewrite("quotes of texts", lambda text: ast.unparse(ast.parse(text)) + "\n")
rewrite("tabs for spaces", lambda text: text.replace("    ", "\t"))
rewrite("line ends of another system", lambda text: text.replace("\n", "\r\n"))


def _use_typing(text: str, pattern: str, new: str, name: str) -> str:
    changed = re.sub(pattern, new, text)
    return text if changed == text else _after_future(changed, f"from typing import {name}\n")


def _after_future(text: str, line: str) -> str:
    head, mark, rest = text.partition("from __future__ import annotations\n")
    if mark:
        return f"{head}{mark}{line}{rest}"
    if text.startswith('"""'):
        end = text.index('"""', 3) + 4
        return f"{text[:end]}{line}{text[end:]}"
    return line + text


def _reverse_imports(text: str) -> str:
    lines = text.splitlines(keepends=True)
    places = [
        number
        for number, line in enumerate(lines)
        if re.match(r"(from (?!__future__)\S+ import [^(]+|import \S+)$", line)
    ]
    moved = [lines[number] for number in reversed(places)]
    for number, line in zip(places, moved, strict=True):
        lines[number] = line
    return "".join(lines)


def _reverse_members(text: str) -> str:
    def reverse(found: re.Match[str]) -> str:
        return found[1] + "".join(reversed(found[2].splitlines(keepends=True)))

    return re.sub(r"(class \w+\(TypedDict\):\n)((?:    \w+: [^\n]+\n)+)", reverse, text)
