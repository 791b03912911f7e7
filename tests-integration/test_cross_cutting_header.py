"""`X-Request-ID`: honoured, else generated, echoed, and in every line logged (S-79, S-92)."""

import re

import pytest
from http_messages import Call
from serving import Serve, Served

LOGS = """
from treefold import get_logger

{kind}def handler(request):
    get_logger().info("handler saw %s", request.id)
    get_logger("shop").warning("child saw %s", request.id)
    return request.id
"""
TREE = {
    "Api/v1/Async/Get.py": LOGS.format(kind="async "),
    "Api/v1/Plain/Get.py": LOGS.format(kind=""),
    "Api/v1/Fails/Get.py": "async def handler(request): 1 / 0",
    "Api/v1/Refuses/Get.py": """
        from treefold import HTTPError

        async def handler(request):
            raise HTTPError(418, "teapot", headers={"X-Request-ID": "forged"})
        """,
    "Api/v1/Stream/Get.py": """
        from treefold import StreamingResponse, get_logger

        async def handler(request):
            async def lines():
                get_logger().info("stream saw %s", request.id)
                yield request.id

            return StreamingResponse(lines())
        """,
    "Api/v1/Background/Get.py": """
        from treefold import Response, get_logger

        async def handler(request):
            def later():
                get_logger().info("background saw %s", request.id)

            return Response.text(request.id, background=later)
        """,
    "Api/v1/Task/Get.py": """
        import asyncio
        from treefold import get_logger

        async def handler(request):
            async def child():
                get_logger().info("task saw %s", request.id)

            await asyncio.create_task(child())
            return request.id
        """,
}
GENERATED = re.compile(r"[0-9a-f]{28,}")


@pytest.fixture(scope="module")
def app(serve: Serve) -> Served:
    return serve(TREE)


@pytest.mark.parametrize(
    "sent",
    ["a", "req-1", "A.b_c:d@e/f+g=h-i", "0" * 128, "5f0c7a3e-1b1f-4a53-9a4f-0d6f8f3d9f10"],
)
def test_a_well_formed_value_is_honoured(app: Served, sent: str) -> None:
    answer = app.get("/v1/async", ("X-Request-ID", sent))
    assert (answer.id, answer.text) == (sent, sent)
    assert app.line(answer)


def test_without_a_value_one_is_generated(app: Served) -> None:
    answers = [app.get("/v1/async") for _ in range(3)]
    assert all(GENERATED.fullmatch(answer.id) and answer.text == answer.id for answer in answers)
    assert len({answer.id for answer in answers}) == 3


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param("", id="empty"),
        pytest.param("two words", id="a space"),
        pytest.param('a" x="', id="quotes"),
        pytest.param("a\tb", id="a tab"),
        pytest.param("\xe9t\xe9", id="obs-text"),
        pytest.param("a,b", id="a list"),
        pytest.param("<script>", id="markup"),
        pytest.param("${jndi:ldap}", id="an expression"),
        pytest.param("%0aid=x", id="an escape"),
        pytest.param("0" * 129, id="129 characters"),
        pytest.param("x" * 10_000, id="10 KB"),
    ],
)
def test_s79_a_hostile_value_is_replaced(app: Served, sent: str) -> None:
    answer = app.get("/v1/async", ("X-Request-ID", sent))
    assert answer.status == 200
    assert GENERATED.fullmatch(answer.id)
    assert app.line(answer)


def test_s79_a_value_sent_twice_is_replaced(app: Served) -> None:
    answer = app.get("/v1/async", ("X-Request-ID", "one"), ("X-Request-ID", "one"))
    assert GENERATED.fullmatch(answer.id)


def test_s79_an_escape_character_never_reaches_the_log(kind: str, app: Served) -> None:
    answer = app.get("/v1/async", ("X-Request-ID", "a\x1b[2Jb"))
    assert answer.status == (400 if kind == "httptools" else 200)  # its parser refuses the byte
    marker = app.get("/v1/async")
    app.line(marker)
    assert "\x1b" not in "".join(app.wait_for(lambda lines: lines))


@pytest.mark.parametrize(
    "target", ["/v1/async", "/v1/nothing", "/v1/fails", "/v1/refuses", "/v1/stream", "/v1/%00"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_it_is_on_every_answer_once(app: Served, method: str, target: str) -> None:
    answer = app.request(method, target, headers=[("X-Request-ID", "sent-1")])
    assert answer.values("x-request-id") == ["sent-1"]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        pytest.param("/v1/async", "handler saw", id="async handler"),
        pytest.param("/v1/async", "child saw", id="child logger"),
        pytest.param("/v1/plain", "handler saw", id="sync handler in its thread"),
        pytest.param("/v1/stream", "stream saw", id="stream"),
        pytest.param("/v1/background", "background saw", id="background"),
        pytest.param("/v1/task", "task saw", id="task"),
    ],
)
def test_it_is_in_the_lines_of_get_logger(app: Served, target: str, words: str) -> None:
    answer = app.get(target)

    def find(lines: list[str]) -> list[str]:
        return [line for line in lines if f"{words} {answer.id}" in line]

    (line,) = app.wait_for(find)
    assert f"id={answer.id}" in line


def test_it_is_in_the_problem_document(app: Served) -> None:
    answer = app.get("/v1/nothing")
    assert answer.json()["request_id"] == answer.id


def test_s92_200_requests_at_the_same_time_keep_their_own(app: Served) -> None:
    targets = ["/v1/async", "/v1/plain", "/v1/background", "/v1/task"]
    sent = {f"mixed-{n}": targets[n % 4] for n in range(200)}
    calls = [Call(target=target, headers=[("X-Request-ID", id)]) for id, target in sent.items()]
    answers = app.send(calls)
    assert [answer.text for answer in answers] == list(sent)

    def all_logged(lines: list[str]) -> list[str]:
        saw = [line for line in lines if re.search(r" saw mixed-[0-9]+", line)]
        return saw if len(saw) == 300 else []

    for line in app.wait_for(all_logged):
        match = re.search(r" saw (mixed-[0-9]+)", line)
        assert match is not None
        assert f"id={match[1]}" in line.split()


def test_a_line_outside_of_requests_carries_no_id(app: Served) -> None:
    (booted,) = app.wait_for(lambda lines: [line for line in lines if "booted in" in line])
    assert "mixed-" not in booted
