"""The async test client: the same application, on the loop of the test."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from treefold_http import Application, BootError
from treefold_http.testing import AsyncTestClient

Project = Callable[..., Application]

FILES = {
    "Api/v1/Where/Get.py": """
        import asyncio

        async def handler(request):
            return str(id(asyncio.get_running_loop()))
    """,
    "Api/v1/Echo/Post.py": """
        async def handler(request):
            return (await request.body()).decode()
    """,
    "Api/v1/Ticks/Get.py": """
        async def handler(request):
            try:
                while True:
                    yield "tick"
            finally:
                request.app.state.closed = True
    """,
    "Api/v1/Boom/Get.py": "async def handler(request):\n    raise LookupError('of the handler')\n",
}


@pytest.fixture
def app(project: Project) -> Application:
    return project(FILES)


def test_the_application_runs_on_the_loop_of_the_test(app: Application) -> None:
    async def main() -> bool:
        async with AsyncTestClient(app) as client:
            answer = await client.get("/v1/where")
            return answer.text == str(id(asyncio.get_running_loop()))

    assert asyncio.run(main())


def test_an_async_generator_is_a_body(app: Application) -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b"a"
        yield b"b" * 100_000

    async def main() -> str:
        async with AsyncTestClient(app) as client:
            return (await client.post("/v1/echo", content=parts())).text

    assert asyncio.run(main()) == "a" + "b" * 100_000


def test_leaving_a_stream_runs_the_finally_of_its_generator(app: Application) -> None:
    async def main() -> bool:
        async with AsyncTestClient(app) as client:
            async with client.stream("GET", "/v1/ticks") as answer:
                assert (await anext(answer.aiter_text())).startswith("tick")
            return app.state.closed

    assert asyncio.run(main())


def test_an_unhandled_exception_is_raised_unless_it_is_not_wanted(app: Application) -> None:
    async def main() -> int:
        async with AsyncTestClient(app) as client:
            with pytest.raises(LookupError, match="of the handler"):
                await client.get("/v1/boom")
        async with AsyncTestClient(app, raise_app_errors=False) as client:
            return (await client.get("/v1/boom")).status_code

    assert asyncio.run(main()) == 500


def test_requests_run_at_the_same_time(app: Application) -> None:
    async def main() -> list[int]:
        async with AsyncTestClient(app) as client:
            answers = await asyncio.gather(*(client.get("/v1/where") for _ in range(20)))
            return [answer.status_code for answer in answers]

    assert asyncio.run(main()) == [200] * 20


def test_many_first_requests_start_the_application_once(project: Project) -> None:
    source = "starts = []\non_startup = [lambda app: starts.append(app)]\n"
    app = project(FILES | {"hooks.py": source})

    async def main() -> int:
        client = AsyncTestClient(app)
        await asyncio.gather(*(client.get("/v1/where") for _ in range(5)))
        await client.aclose()
        return len(app.project.boot_files.on_startup[0].__globals__["starts"])

    assert asyncio.run(main()) == 1


def test_a_client_belongs_to_one_loop(app: Application) -> None:
    client = AsyncTestClient(app)
    expected = "^This client belongs to another event loop; create one in each loop$"
    with asyncio.Runner() as runner, asyncio.Runner() as other:
        runner.run(client.get("/v1/where"))
        with pytest.raises(RuntimeError, match=expected):
            other.run(client.get("/v1/where"))
        runner.run(client.aclose())


def test_a_failing_start_raises_the_boot_error(project: Project) -> None:
    app = project({"hooks.py": "def begin():\n    1 / 0\n\non_startup = [begin]\n"})

    async def main() -> None:
        async with AsyncTestClient(app):
            pytest.fail("the application started")

    with pytest.raises(BootError, match="ZeroDivisionError"):
        asyncio.run(main())


def test_a_cancelled_request_is_a_client_that_leaves() -> None:
    seen: list[str] = []

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        await receive()
        seen.append((await receive())["type"])

    async def main() -> None:
        async with AsyncTestClient(serve) as client:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.get("/"), 0.01)

    asyncio.run(main())
    assert seen == ["http.disconnect"]


def test_a_plain_generator_is_refused_by_the_async_client(app: Application) -> None:
    async def main() -> httpx.Response:
        async with AsyncTestClient(app) as client:
            return await client.post("/v1/echo", content=iter([b"x"]))

    with pytest.raises(RuntimeError, match="sync request"):
        asyncio.run(main())
