"""Providers: values by type and by name, once for the application or once for each request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, Provider

if TYPE_CHECKING:
    from conftest import Answer, Exchange, Lines

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

POST = "Api/v1/X/Get.py"

KINDS = """
from treefold_http import *

made = []

class Database:
    def __init__(self, url="own"):
        made.append(type(self).__name__)
        self.url = url

class Replica(Database): ...
"""


def providing(project: Project, providers: str, handler: str, **options: Any) -> Application:
    return project(
        {
            "Services/kinds.py": KINDS,
            "providers.py": f"from Services.kinds import *\n{providers}",
            POST: f"from typing import *\nfrom Services.kinds import *\n{handler}",
        },
        **options,
    )


def made(app: Application) -> list[Any]:
    (module,) = app.project.modules.values()
    return getattr(module, "handler").__globals__["made"]  # noqa: B009 - a union


@pytest.mark.parametrize(
    ("parameter", "expression", "value"),
    [
        ("db: Database", "db.url", "from a type"),
        ("db: Annotated[Database, 'note']", "db.url", "from a type"),
        ("name", "name", "from a name"),
        ("name: str", "name", "from a name"),
        ("name: str = 'default'", "name", "from a name"),
        ("other: Database", "other.url", "from a type"),
        ("nested", "nested", "nested from a name"),
        ("later", "later", "async"),
        ("entered", "entered", "entered"),
    ],
)
def test_a_parameter_is_provided_by_its_type_then_by_its_name(
    project: Project, ask: Ask, parameter: str, expression: str, value: str
) -> None:
    app = providing(
        project,
        """
async def later():
    return "async"

def entered():
    yield "entered"

providers = {
    Database: lambda: Database("from a type"),
    "db": lambda: "by the wrong way",
    "name": lambda: "from a name",
    "nested": lambda name: f"nested {name}",
    "later": later,
    "entered": entered,
}
""",
        f"def handler({parameter}):\n    return {{'value': {expression}}}\n",
    )

    assert ask(app, "GET", "/v1/x?name=query&db=query").json() == {"value": value}


def test_a_subclass_is_no_provider_of_its_base_nor_the_other_way(
    project: Project, ask: Ask
) -> None:
    app = providing(
        project,
        "providers = {Database: Database}",
        "def handler(db: Replica):\n    return db.url\n",
    )
    app.boot()

    assert len(app.report.broken) == 1


def test_a_path_parameter_is_never_provided(project: Project, ask: Ask) -> None:
    app = project(
        {
            "providers.py": "providers = {'id': lambda: 'provided', str: lambda: 'provided'}",
            "Api/v1/X/[id]/Get.py": "def handler(id: str):\n    return [id]\n",
        }
    )

    assert ask(app, "GET", "/v1/x/5").json() == ["5"]


def test_a_value_of_the_request_is_made_once_for_each(project: Project, ask: Ask) -> None:
    app = providing(
        project,
        "providers = {Database: Database, 'again': lambda a: a, 'a': Database}",
        "def handler(db: Database, same: Database, a, again):\n"
        "    return [db is same, db is a, a is again]\n",
    )

    assert ask(app, "GET", "/v1/x").json() == [True, True, True]
    ask(app, "GET", "/v1/x")
    assert made(app) == ["Database"] * 2


APP_VALUE = """
async def database():
    made.append("in")
    yield Database()
    made.append("out")

providers = {Database: Provider(database, scope="app")}
"""

USE = "async def handler(db: Database):\n    return [id(db)]\n"


def test_a_value_of_the_application_is_made_once_and_left_at_its_end(
    project: Project, exchange: type[Exchange]
) -> None:
    app = providing(project, APP_VALUE, USE)

    async def main() -> None:
        await app.lifespan.run_startup()
        assert made(app) == []
        answers = await asyncio.gather(*(exchange("GET", "/v1/x").run(app) for _ in range(20)))
        assert len({answer.body for answer in answers}) == 1
        assert made(app) == ["in", "Database"]
        await app.lifespan.run_shutdown()
        assert made(app) == ["in", "Database", "out"]

    for _ in range(2):
        asyncio.run(main())
        made(app).clear()


SLOW = """
import asyncio

async def slow():
    made[0].set()
    await made[1].wait()
    made.append("end")
    return "value"

providers = {"slow": Provider(slow, scope="app")}
"""


def test_who_asks_first_may_leave_and_the_value_is_made_all_the_same(
    project: Project, exchange: type[Exchange]
) -> None:
    app = providing(project, SLOW, "async def handler(slow):\n    return 'ok'\n")

    async def main() -> None:
        made(app).extend([asyncio.Event(), asyncio.Event()])
        await app.lifespan.run_startup()
        first = asyncio.ensure_future(exchange("GET", "/v1/x").run(app))
        await made(app)[0].wait()
        second = asyncio.ensure_future(exchange("GET", "/v1/x").run(app))
        first.cancel()
        await asyncio.wait([first])
        assert first.cancelled()
        made(app)[1].set()
        assert (await second).status == 200
        assert made(app)[2:] == ["end"]
        await app.lifespan.run_shutdown()

    async def limited() -> None:
        async with asyncio.timeout(10):
            await main()

    asyncio.run(limited())


def test_a_value_that_could_not_be_made_is_tried_again(project: Project, ask: Ask) -> None:
    app = providing(
        project,
        """
def flaky():
    made.append("try")
    if len(made) == 1:
        raise LookupError("not yet")
    return "value"

providers = {"flaky": Provider(flaky, scope="app")}
""",
        "def handler(flaky):\n    return [flaky]\n",
    )

    assert [ask(app, "GET", "/v1/x").status for _ in range(3)] == [500, 200, 200]
    assert made(app) == ["try", "try"]


def test_a_value_of_the_application_cannot_need_a_request(project: Project, ask: Ask) -> None:
    app = providing(
        project,
        "providers = {'a': Provider(lambda request: request, scope='app')}",
        "def handler(a):\n    return [a]\n",
    )
    app.boot()

    (broken,) = app.report.broken
    assert broken.error == (
        "InjectionError: <lambda>() needs the request, but this call has no connection"
    )


def test_providers_in_a_circle_are_an_error_that_shows_it(project: Project, ask: Ask) -> None:
    app = providing(
        project,
        "def one(two): ...\ndef two(one): ...\n"
        "providers = {'one': Provider(one, 'app'), 'two': Provider(two, 'app')}",
        "def handler(one): ...\n",
    )
    app.boot()

    (broken,) = app.report.broken
    assert "Dependencies form a cycle: one() -> two() -> one()" in broken.error


def test_a_provider_whose_end_fails_is_logged_and_the_shutdown_goes_on(
    project: Project, exchange: type[Exchange], lines: Lines
) -> None:
    app = providing(
        project,
        """
async def good():
    try:
        yield "good"
    finally:
        made.append("good out")

async def broken(good):
    yield "broken"
    raise LookupError("at the end")

providers = {"good": Provider(good, "app"), "broken": Provider(broken, "app")}
""",
        "async def handler(broken):\n    return 'ok'\n",
    )

    async def main() -> None:
        await app.lifespan.run_startup()
        assert (await exchange("GET", "/v1/x").run(app)).status == 200
        await app.lifespan.run_shutdown()
        assert not app.lifespan.started

    asyncio.run(main())
    assert made(app) == ["good out"]
    assert [str(error) for error in lines.errors()] == ["at the end"]


# -- in code, and in tests


def test_a_provider_given_in_code_serves_before_and_after_the_boot(
    project: Project, ask: Ask
) -> None:
    app = project({POST: "def handler(a):\n    return [a]\n"})
    app.boot()
    assert ask(app, "GET", "/v1/x").status == 500

    app.provide("a", lambda: 1)
    assert ask(app, "GET", "/v1/x").json() == [1]
    app.provide("a", lambda: 2, scope="app")
    assert ask(app, "GET", "/v1/x").json() == [2]


@pytest.mark.parametrize("scope", ["app", "request"])
def test_an_override_takes_the_place_of_a_provider(project: Project, ask: Ask, scope: Any) -> None:
    class Real: ...

    def real() -> Real:
        raise AssertionError("it was replaced")

    app = project({POST: "def handler(db):\n    return [db]\n"})
    app.provide("db", real, scope=scope)
    app.overrides[real] = lambda: "fake"

    assert ask(app, "GET", "/v1/x").json() == ["fake"]


@pytest.mark.parametrize(
    ("key", "factory", "message"),
    [
        (5, list, r"^A provider key must be a type or a name, got 5$"),
        (None, list, r"^A provider key must be a type or a name, got None$"),
        (
            "a",
            5,
            r"^The provider of 'a' must be a function, a class or a generator, got 'int'$",
        ),
        ("a", Provider(5), r"^The provider of 'a' must be a function, .*, got 'int'$"),  # pyright: ignore[reportArgumentType] - what is tested
    ],
)
def test_what_can_provide_nothing_is_refused(
    tmp_path: Any, key: Any, factory: Any, message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        Application(tmp_path).providers.add_provider(key, factory)


def test_depends_alone_does_not_ask_the_client_for_the_fields_of_a_value(
    project: Project, ask: Ask
) -> None:
    app = providing(
        project,
        "providers = {Database: lambda: Database('provided')}",
        "async def handler(db: Database = Depends(), other: Annotated[Database, Depends()] = None,"
        " work: BackgroundTasks = Depends(), x: Request = Depends()):\n"
        "    return [db.url, other.url, x.query.get('url'), type(work).__name__]",
    )
    answer = ask(app, "GET", "/v1/x?url=forged")
    assert answer.json() == ["provided", "provided", "forged", "BackgroundTasks"]
