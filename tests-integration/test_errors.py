"""The error table of the specification, and the problem documents of the rulings (S-56)."""

import json

import pytest
from serving import Serve, Served

TREE = {
    "Api/v1/Item/Get.py": "async def handler(request): return {}",
    "Api/v1/Item/Post.py": """
        async def handler(request):
            return await request.json()
        """,
    "Api/v1/Raise/[status]/Get.py": """
        from treefold import HTTPError

        async def handler(request, status: int):
            raise HTTPError(status, f"message of {status}")
        """,
    "Api/v1/Plain/Get.py": """
        from treefold import HTTPError

        def handler(request):
            raise HTTPError(409, "from a thread")
        """,
    "Api/v1/Silent/Get.py": """
        from treefold import HTTPError

        async def handler(request):
            raise HTTPError(404)
        """,
    "Api/v1/Named/[name]/Get.py": """
        import treefold

        async def handler(request, name):
            raise getattr(treefold, name)("by name")
        """,
    "Api/v1/Headers/Get.py": """
        from treefold import HTTPError

        async def handler(request):
            raise HTTPError(429, "slow down", headers={"Retry-After": "7"})
        """,
    "Api/v1/Errors/Get.py": """
        from treefold import UnprocessableEntity

        async def handler(request):
            errors = [{"loc": ["body", "name"], "msg": "is too short", "type": "length"}]
            raise UnprocessableEntity("not valid", errors=errors)
        """,
    "Api/v1/Id/[id]/Get.py": """
        from treefold import HTTPError

        async def handler(request):
            if not request.path_params["id"].isdigit():
                raise HTTPError(422, "id must be a number")
            return {"id": int(request.path_params["id"])}
        """,
    "Api/v1/Crash/Get.py": """
        async def handler(request):
            raise LookupError("<script>alert('S3cr3t')</script>")
        """,
    "Api/v1/CrashPlain/Get.py": """
        def handler(request):
            raise LookupError("S3cr3t in a thread")
        """,
    "Api/v1/Exit/Get.py": "def handler(request): raise SystemExit(3)",
    "Api/v1/Interrupt/Get.py": "async def handler(request): raise KeyboardInterrupt",
    "Api/v1/Cancel/Get.py": """
        import asyncio

        async def handler(request):
            raise asyncio.CancelledError
        """,
    "Api/v1/Stop/Get.py": "def handler(request): raise StopIteration('S3cr3t')",
    "Api/v1/BadStatus/Get.py": """
        from treefold import HTTPError

        async def handler(request):
            raise HTTPError(200, "S3cr3t")
        """,
    "Api/v1/Late/Get.py": """
        from treefold import StreamingResponse

        async def handler(request):
            async def parts():
                yield "first"
                raise LookupError("late")

            return StreamingResponse(parts())
        """,
    "Api/v1/Broken/Get.py": "import no_such_module",
    "Api/v1/Sock/Ws.py": "async def handler(websocket): ...",
    "Api/v1/Both/Ws.py": "async def handler(websocket): ...",
    "Api/v1/Both/Get.py": "async def handler(request): return {}",
}


@pytest.fixture(scope="module")
def app(serve: Serve) -> Served:
    return serve(TREE)


@pytest.fixture(scope="module")
def dev(serve: Serve) -> Served:
    return serve(TREE, dev=True)


MIDDLEWARE = """
    async def mark(request, call_next):
        response = await call_next(request)
        response.headers["X-Marked"] = "yes"
        return response

    middlewares = [mark]
    """


@pytest.fixture(scope="module")
def marked(serve: Serve) -> Served:
    return serve(TREE | {"Middleware/__init__.py": MIDDLEWARE})


@pytest.mark.parametrize(
    ("method", "target", "status", "title", "detail"),
    [
        pytest.param(
            "GET", "/v1/none", 404, "Not Found", "There is nothing at this path", id="no route"
        ),
        pytest.param(
            "GET", "/item", 404, "Not Found", "There is nothing at this path", id="no version"
        ),
        pytest.param(
            "GET",
            "/v9/item",
            404,
            "Not Found",
            "There is nothing at this path",
            id="unknown version",
        ),
        pytest.param(
            "PUT", "/v1/item", 405, "Method Not Allowed", "This path answers GET, POST", id="method"
        ),
        pytest.param(
            "GET", "/v1/id/abc", 422, "Unprocessable Content", "id must be a number", id="HTTPError"
        ),
        pytest.param(
            "GET", "/v1/plain", 409, "Conflict", "from a thread", id="HTTPError in a thread"
        ),
        pytest.param(
            "GET", "/v1/silent", 404, "Not Found", "Not Found", id="HTTPError, no message"
        ),
        pytest.param("GET", "/v1/raise/599", 599, "Error", "message of 599", id="unnamed status"),
        pytest.param(
            "GET",
            "/v1/crash",
            500,
            "Internal Server Error",
            "The server failed to answer this request",
            id="unhandled exception",
        ),
        pytest.param(
            "GET",
            "/v1/a%00b",
            400,
            "Bad Request",
            "Path holds a control character",
            id="malformed path",
        ),
    ],
)
def test_an_error_is_a_problem_document(
    app: Served, method: str, target: str, status: int, title: str, detail: str
) -> None:
    answer = app.request(method, target)
    assert answer.status == status
    assert answer.value("content-type") == "application/problem+json"
    assert answer.json() == {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail,
        "instance": target,
        "request_id": answer.id,
    }


def test_a_body_that_is_not_valid_json_is_400(app: Served) -> None:
    answer = app.post("/v1/item", b"{")
    assert (answer.status, answer.json()["title"]) == (400, "Bad Request")


def test_an_empty_body_is_none_and_no_error(app: Served) -> None:
    assert app.post("/v1/item", b"").status == 204


def test_a_path_id_the_handler_accepts_is_no_error(app: Served) -> None:
    assert app.get("/v1/id/12").json() == {"id": 12}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 418, 422, 429, 451, 503])
def test_http_error_answers_with_its_status(app: Served, status: int) -> None:
    answer = app.get(f"/v1/raise/{status}")
    assert (answer.status, answer.json()["detail"]) == (status, f"message of {status}")


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("BadRequest", 400),
        ("Unauthorized", 401),
        ("Forbidden", 403),
        ("NotFound", 404),
        ("MethodNotAllowed", 405),
        ("Conflict", 409),
        ("PayloadTooLarge", 413),
        ("UnprocessableEntity", 422),
        ("TooManyRequests", 429),
        ("ServiceUnavailable", 503),
    ],
)
def test_each_named_error_has_its_status(app: Served, name: str, status: int) -> None:
    answer = app.get(f"/v1/named/{name}")
    assert (answer.status, answer.json()["detail"]) == (status, "by name")


def test_http_error_may_carry_headers(app: Served) -> None:
    answer = app.get("/v1/headers")
    assert (answer.status, answer.value("retry-after")) == (429, "7")


def test_http_error_may_carry_validation_errors(app: Served) -> None:
    answer = app.get("/v1/errors")
    assert answer.json()["errors"] == [
        {"loc": ["body", "name"], "msg": "is too short", "type": "length"}
    ]


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "OPTIONS"])
def test_plain_http_on_a_path_with_only_a_socket_file_is_405_with_upgrade(
    app: Served, method: str
) -> None:
    answer = app.request(method, "/v1/sock")
    assert answer.status == 405
    assert (answer.value("allow"), answer.value("upgrade")) == ("WEBSOCKET", "websocket")


def test_allow_lists_a_socket_file_beside_the_methods(app: Served) -> None:
    answer = app.request("PUT", "/v1/both")
    assert (answer.value("allow"), answer.values("upgrade")) == ("GET, WEBSOCKET", [])


def test_the_405_of_a_head_request_has_no_body(app: Served) -> None:
    answer = app.request("HEAD", "/v1/item")
    assert (answer.status, answer.body, answer.value("allow")) == (405, b"", "GET, POST")


CRASHES = ["crash", "crashplain", "exit", "interrupt", "cancel", "stop", "badstatus"]


@pytest.mark.parametrize("name", CRASHES)
def test_s56_a_crash_is_500_and_shows_nothing_in_production(app: Served, name: str) -> None:
    answer = app.get(f"/v1/{name}")
    assert answer.status == 500
    assert set(answer.json()) == {"type", "title", "status", "detail", "instance", "request_id"}
    assert answer.json()["detail"] == "The server failed to answer this request"
    assert b"S3cr3t" not in answer.body


@pytest.mark.parametrize("name", CRASHES)
def test_a_crash_is_logged_at_error_with_its_traceback(app: Served, name: str) -> None:
    block = app.block(app.get(f"/v1/{name}"))
    assert block.startswith(f"[ERROR] GET /v1/{name} -> 500 ")
    assert "Traceback (most recent call last)" in block


@pytest.mark.parametrize("name", CRASHES)
def test_the_application_serves_on_after_a_crash(app: Served, name: str) -> None:
    app.get(f"/v1/{name}")
    assert app.get("/v1/item").status == 200


def test_s56_a_crash_shows_its_exception_with_dev_and_escapes_markup(dev: Served) -> None:
    answer = dev.get("/v1/crash")
    assert answer.status == 500
    assert b"<" not in answer.body
    document = json.loads(answer.body)
    assert document["detail"] == "LookupError: <script>alert('S3cr3t')</script>"
    assert "Traceback (most recent call last)" in document["traceback"][0]


def test_a_stream_that_fails_half_way_is_cut_and_logged(app: Served) -> None:
    with pytest.raises(AssertionError, match="in the middle of an answer"):
        app.get("/v1/late", ("X-Request-ID", "late-1"))
    wanted = "[ERROR] GET /v1/late -> 200 "  # the status that went out before it failed

    def find(lines: list[str]) -> list[str]:
        return [line for line in lines if line.startswith(wanted) and "id=late-1" in line]

    assert len(app.wait_for(find)) == 1


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/v1/none", 404),
        ("GET", "/none", 404),
        ("PUT", "/v1/item", 405),
        ("GET", "/v1/sock", 405),
        ("GET", "/v1/%ff", 400),
        ("GET", "/v1/id/abc", 422),
        ("GET", "/v1/raise/503", 503),
        ("GET", "/v1/crash", 500),
        ("GET", "/v1/badstatus", 500),
        ("GET", "/v1/broken", 500),
    ],
)
def test_s57_middleware_and_the_common_headers_are_on_every_error(
    marked: Served, method: str, target: str, status: int
) -> None:
    answer = marked.request(method, target)
    assert answer.status == status
    assert answer.value("x-marked") == "yes"
    assert answer.value("x-content-type-options") == "nosniff"
    assert marked.line(answer)


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "*/*;q=0"])
def test_errors_are_problem_documents_whatever_is_accepted(app: Served, accept: str) -> None:
    answer = app.get("/v1/none", ("Accept", accept))
    assert answer.value("content-type") == "application/problem+json"
