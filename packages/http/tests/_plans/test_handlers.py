"""What a handler module may define, and what is said of one that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from treefold_http import Deprecation
from treefold_http._modules.modules import ModuleSpace
from treefold_http._plans.handlers import HandlerError, HandlerModule, load_handler
from treefold_router import RouteTable

Load = Callable[[str], HandlerModule]

HANDLER = "async def handler(request): ...\n"


@pytest.fixture
def load(write: Callable[..., Path]) -> Load:
    def make(text: str) -> HandlerModule:
        root = write({"Api/v1/User/Get.py": text})
        (route,) = RouteTable.scan(root / "Api").routes
        return load_handler(ModuleSpace.get_or_create_space(root), route, ())

    return make


def test_a_handler_alone_has_every_default(load: Load) -> None:
    module = load(HANDLER)

    assert module.handler.__name__ == "handler"
    assert module.status_code is None
    assert list(module.middlewares) == []
    assert module.max_body is None
    assert module.log_payload is True


def test_every_option_is_read(load: Load) -> None:
    module = load(
        HANDLER
        + "status_code = 201\nmiddlewares = (handler,)\nmax_body = 0\nlog_payload = False\n"
        + "summary = 'Ours'\nanything = object()\n"
    )

    assert module.status_code == 201
    assert list(module.middlewares) == [module.handler]
    assert module.max_body == 0
    assert module.log_payload is False


@pytest.mark.parametrize(
    "text",
    [
        "def handler(request): ...",
        "handler = lambda request: None",
        "class Handler:\n    def __call__(self, request): ...\nhandler = Handler()",
        "import functools\nhandler = functools.partial(print)",
        "async def handler(request):\n    yield 1",
    ],
)
def test_any_callable_is_a_handler(load: Load, text: str) -> None:
    assert callable(load(text).handler)


@pytest.mark.parametrize("text", ["", "handler = None", "async def handle(request): ..."])
def test_a_file_without_a_handler_is_refused(load: Load, text: str) -> None:
    with pytest.raises(
        HandlerError,
        match=r"^v1/User/Get\.py has no `handler`; define `async def handler\(request\)`$",
    ):
        load(text)


@pytest.mark.parametrize(("text", "kind"), [("5", "int"), ("{}", "dict"), ("'text'", "str")])
def test_a_handler_that_cannot_be_called_is_refused(load: Load, text: str, kind: str) -> None:
    with pytest.raises(
        HandlerError,
        match=rf"^`handler` in v1/User/Get\.py must be a function, got '{kind}'$",
    ):
        load(f"handler = {text}")


@pytest.mark.parametrize(
    ("option", "wanted"),
    [
        ("middlewares = 5", "list or tuple"),
        ("middlewares = {}", "list or tuple"),
        ("max_body = '5'", "int"),
        ("max_body = 1.5", "int"),
        ("max_body = True", "int"),
        ("max_body = False", "int"),
        ("log_payload = 1", "bool"),
        ("log_payload = 'no'", "bool"),
    ],
)
def test_an_option_of_another_type_is_refused(load: Load, option: str, wanted: str) -> None:
    name, _, value = option.partition(" = ")
    with pytest.raises(
        HandlerError, match=rf"^`{name}` in v1/User/Get\.py must be {wanted}, got {value}$"
    ):
        load(HANDLER + option)


def test_what_is_said_for_the_document_is_read(load: Load) -> None:
    module = load(
        HANDLER
        + "summary = 'S'\ndescription = 'D'\ntags = ('t',)\ndeprecated = True\n"
        + "response_model = list[int]\noperation_id = 'read.it-1'\n"
        + "responses = {404: 'No', '4XX': int, 'default': {'model': str, 'headers': {}}}\n"
    )

    assert (module.summary, module.description, module.tags) == ("S", "D", ("t",))
    assert (module.deprecated, module.operation_id) == (Deprecation(), "read.it-1")
    assert module.response_model == list[int]
    assert module.responses is not None
    assert list(module.responses) == [404, "4XX", "default"]


BAD_MODEL = (
    "`response_model` in v1/User/Get.py must be a type, or True for the return annotation, got"
)
BAD_KEY = (
    "A key of `responses` in v1/User/Get.py must be a status such as 404,"
    " a range such as '4XX', or 'default', got"
)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("summary = 5", "`summary` in v1/User/Get.py must be str, got 5"),
        ("description = []", "`description` in v1/User/Get.py must be str, got []"),
        ("tags = 'user'", "`tags` in v1/User/Get.py must be list or tuple, got 'user'"),
        ("tags = ['a', 5]", "`tags` in v1/User/Get.py must be a list of names, got ['a', 5]"),
        ("tags = ['']", "`tags` in v1/User/Get.py must be a list of names, got ['']"),
        (
            "deprecated = 1",
            "`deprecated` in v1/User/Get.py must be True, a day such as '2026-11-01' or a"
            " Deprecation, got 1",
        ),
        (
            "operation_id = 'a b'",
            "`operation_id` in v1/User/Get.py must consist of letters, digits, '_', '.' and '-',"
            " got 'a b'",
        ),
        ("operation_id = ''", "`operation_id` in v1/User/Get.py must consist of"),
        (
            "response_model = 'User'",
            f"{BAD_MODEL} 'User'",
        ),
        ("response_model = [int]", f"{BAD_MODEL} "),
        ("response_model = {}", f"{BAD_MODEL} {{}}"),
        ("responses = [404]", "`responses` in v1/User/Get.py must be Mapping, got [404]"),
        (
            "responses = {'gone': 'x'}",
            f"{BAD_KEY} 'gone'",
        ),
        ("responses = {99: 'x'}", f"{BAD_KEY} 99"),
        ("responses = {True: 'x'}", f"{BAD_KEY} True"),
        (
            "responses = {404: 5}",
            "`responses` in v1/User/Get.py must have a text, a type or a table for 404, got 5",
        ),
        (
            "responses = {404: {'modle': int}}",
            "`responses` in v1/User/Get.py has the unknown key 'modle' for 404; use description, ",
        ),
        (
            "responses = {404: {'model': 'User'}}",
            "`responses` in v1/User/Get.py must have a type as model of 404, got 'User'",
        ),
        (
            "responses = {404: {'description': 5}}",
            "`responses` in v1/User/Get.py must have a text as description of 404, got 5",
        ),
        (
            "responses = {404: {'headers': []}}",
            "`responses` in v1/User/Get.py must have a table as headers of 404, got []",
        ),
    ],
)
def test_what_cannot_stand_in_the_document_is_refused_at_boot(
    load: Load, option: str, message: str
) -> None:
    with pytest.raises(HandlerError) as refused:
        load(HANDLER + option)

    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("value", ["True", "'201'", "99", "600", "201.0", "0"])
def test_a_status_that_no_answer_may_carry_is_refused_at_boot(load: Load, value: str) -> None:
    with pytest.raises((HandlerError, ValueError), match=r"(?i)status"):
        load(f"{HANDLER}status_code = {value}")


def test_a_status_of_none_is_not_given(load: Load) -> None:
    assert load(f"{HANDLER}status_code = None").status_code is None


def test_a_size_below_zero_is_refused_at_boot(load: Load) -> None:
    with pytest.raises(HandlerError, match="max_body"):
        load(f"{HANDLER}max_body = -1")


def test_init_runs_once_right_after_the_import(load: Load) -> None:
    text = (
        f"seen = ['imported']\ndef init():\n    seen.append('init')\n{HANDLER}seen.append('end')\n"
    )
    first = load(text)
    again = load(text)
    seen: Any = first.handler.__globals__["seen"]

    assert again.handler is first.handler
    assert seen == ["imported", "end", "init"]


def test_an_async_init_never_runs_and_leaves_no_warning(load: Load) -> None:
    module = load(f"seen = []\nasync def init():\n    seen.append('init')\n{HANDLER}")

    assert module.handler.__globals__["seen"] == []


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("def init():\n    1 / 0\n", ZeroDivisionError),
        ("def init(app): ...\n", TypeError),
        ("def init():\n    raise SystemExit(1)\n", SystemExit),
        ("init = 5\n", HandlerError),
    ],
)
def test_an_init_that_fails_breaks_the_file_each_time(
    load: Load, text: str, error: type[BaseException]
) -> None:
    for _ in range(2):
        with pytest.raises(error):
            load(HANDLER + text)


def test_an_init_that_is_no_function_is_named(load: Load) -> None:
    with pytest.raises(HandlerError, match=r"^`init` must be a function, got 'int'$"):
        load(HANDLER + "init = 5\n")
