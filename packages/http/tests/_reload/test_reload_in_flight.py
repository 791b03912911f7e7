"""What runs while its code is exchanged ends on the code that it began on."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import weakref
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from http_reloading import MakeLive, X, Y, handler

from treefold_logging import get_logger

if TYPE_CHECKING:
    from conftest import Exchange


def test_a_request_in_flight_ends_on_the_code_that_it_began_on(
    live: MakeLive, exchange: type[Exchange]
) -> None:
    source = """
        import asyncio
        from Services import words
        gate, reached, waiting, n = asyncio.Event(), asyncio.Event(), [], {n}
        async def handler(request):
            before = words.n
            waiting.append(1)
            if len(waiting) == 300:
                reached.set()
            await gate.wait()
            return [before, words.n, n]
    """
    app = live({X: source.format(n=1), "Services/words.py": "n = 1\n", "Services/__init__.py": ""})
    old = sys.modules["Api.v1.X.Get"]

    async def main() -> tuple[list[Any], Any]:
        waiting = [asyncio.ensure_future(exchange("GET", "/v1/x").run(app.app)) for _ in range(300)]
        await old.reached.wait()
        for number in range(2, 5):
            app.edit({X: source.format(n=number), "Services/words.py": f"n = {number}\n"})
        sys.modules["Api.v1.X.Get"].gate.set()
        fresh = await exchange("GET", "/v1/x").run(app.app)
        old.gate.set()
        return [answer.json() for answer in await asyncio.gather(*waiting)], fresh.json()

    stale, fresh = asyncio.run(main())
    assert stale == [[1, 1, 1]] * 300
    assert fresh == [4, 4, 4]


def test_an_open_socket_goes_on_on_the_code_that_it_began_on(live: MakeLive, socket: Any) -> None:
    source = """
        async def handler(websocket):
            await websocket.accept()
            async for message in websocket.iter_text():
                await websocket.send_text(f"{{message}} {n}")
    """
    file = "Api/v1/X/Socket.py"
    app = live({file: dedent(source).format(n=1)})

    async def main() -> tuple[Any, Any]:
        old = socket("/v1/x", messages=["a"], stays=True)
        running = asyncio.ensure_future(old.run(app.app))
        await old.until("send")
        app.edit({file: dedent(source).format(n=2)})
        old.say("b")
        await old.until("send", 2)
        app.edit({file: None})
        old.say("c")
        await old.until("send", 3)
        old.leave()
        await running
        return old.texts, app.app.project.table.routes

    texts, routes = asyncio.run(main())
    assert texts == ["a 1", "b 1", "c 1"]
    assert routes == ()


def test_threads_on_old_code_find_what_they_use_while_modules_change_places(
    live: MakeLive,
) -> None:
    files = {
        X: handler("Services.mail.n", "import Services.mail"),
        "Services/__init__.py": "",
        "Services/mail.py": "from Services import post\nn = 1\n",
        "Services/post.py": "from Services import mail\n",
    }
    app = live(files)
    old = sys.modules["Api.v1.X.Get"].handler
    ended, wrong = threading.Event(), list[BaseException]()

    def run() -> None:
        while not ended.is_set():
            try:
                assert old()[0] in range(1, 25)
            except BaseException as error:
                wrong.append(error)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for n in range(2, 25):
        app.edit({"Services/mail.py": files["Services/mail.py"].replace("1", str(n))})
    ended.set()
    for thread in threads:
        thread.join()

    assert wrong == []
    assert app.get() == [24]


def test_an_import_in_another_thread_waits_for_the_reload(live: MakeLive) -> None:
    app = live(
        {
            X: "def handler():\n    from Services.mail import n\n    return [n]\n",
            "Services/__init__.py": "",
            "Services/mail.py": "n = 1\n",
            Y: handler("1", "import Services.mail"),
        }
    )
    old = sys.modules["Api.v1.X.Get"].handler
    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.append(old()))
    sys.modules["treefold_thread_of_the_test"] = thread  # type: ignore[assignment]
    try:
        app.edit(
            {
                "Services/mail.py": "import sys\n"
                "sys.modules.pop('treefold_thread_of_the_test').start()\n1 / 0\n"
            }
        )
    finally:
        sys.modules.pop("treefold_thread_of_the_test", None)
    thread.join(10)

    assert seen == [[1]]


def test_300_reloads_leave_nothing_behind(live: MakeLive) -> None:
    app = live(
        {
            X: handler("words.n", "from Services import words"),
            "Services/__init__.py": "",
            "Services/words.py": "class Word: ...\nn = 0\n",
            "providers.py": "from Services.words import Word\nproviders = {Word: Word}\n",
        }
    )
    get_logger().setLevel("CRITICAL")  # pytest would keep the traceback of every failure
    left: list[weakref.ref[Any]] = []
    sizes: list[int] = []
    for number in range(1, 301):
        if number % 5 == 0:
            left.append(weakref.ref(sys.modules["Services.words"].Word))
            left.append(weakref.ref(sys.modules["Api.v1.X.Get"].handler))
            left.append(weakref.ref(app.app.project.plans[app.app.table.routes[0]].run))
        text = "n = \n" if number % 10 == 0 else f"class Word: ...\nn = {number}\n"
        app.edit({"Services/words.py": text})
        if number in (150, 300):
            gc.collect()
            sizes.append(len(gc.get_objects()))
    app.edit({"Services/words.py": "class Word: ...\nn = -1\n"})
    assert app.get() == [-1]
    gc.collect()

    assert [ref for ref in left if ref() is not None] == []
    assert sizes[1] - sizes[0] < 300
