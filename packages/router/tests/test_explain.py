"""Why a request is answered as it is, in data and in words."""

from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from treefold_router import Explanation, Found, RouteTable, explanation_lines

TableOf = Callable[..., RouteTable]

FILES = (
    "V1/Foo/Get.py",
    "User/Get.py",
    "v1/Chat/Ws.py",
    "v1/Health/Get.py",
    "v1/User/Get.py",
    "v1/User/Me/Get.py",
    "v1/User/[id]/Get.py",
    "v1/User/[id]/Orders/Get.py",
    "v1/Shop/Services/Cart/Get.py",
    "v2/User/[key]/Post.py",
)


@pytest.fixture(scope="module")
def table(table_of: TableOf) -> RouteTable:
    return table_of(*FILES)


def files(found: Explanation) -> list[str]:
    return [route.file for route in found.near]


def words(found: Explanation) -> list[tuple[str, str]]:
    return [(line.label, line.text) for line in explanation_lines(found)]


def test_what_is_served_is_walked_to_its_file(table: RouteTable):
    found = table.explain("GET", b"/v1/user/me")
    assert (found.status, found.route and found.route.file) == (200, "v1/User/Me/Get.py")
    assert words(found) == [
        ("/v1", "is a folder"),
        ("/user", "is a folder"),
        ("/me", "is a folder, which wins over [id]"),
        ("answer", "200, served by Api/v1/User/Me/Get.py"),
    ]


def test_a_value_is_named(table: RouteTable):
    found = table.explain("GET", b"/v1/user/a%2Fb")
    assert found.steps[-1].segment == "a/b"
    assert words(found)[2] == ("/a/b", "is the value of [id]")


def test_a_method_that_is_missing_comes_with_those_there_are(table: RouteTable):
    found = table.explain("PUT", b"/v1/user/3")
    assert (found.status, found.methods) == (405, ("GET",))
    assert words(found)[-2:] == [
        ("answer", "405: the path exists, but for GET only"),
        ("to add it", "treefold create 'v1/user/[id]' put"),
    ]


def test_a_typing_error_finds_the_near_path(table: RouteTable):
    found = table.explain("GET", b"/v1/helth")
    assert found.steps[-1].here == ("chat", "health", "user")
    assert words(found)[1:4] == [
        ("/helth", "matches nothing: there is chat, health, user"),
        ("answer", "404: no such path"),
        ("did you mean", "GET /v1/health  Api/v1/Health/Get.py"),
    ]


@pytest.mark.parametrize(
    ("path", "near"),
    [
        (b"/v1/User", ["v1/User/Get.py"]),
        (b"/v1/user/3/order", ["v1/User/[id]/Orders/Get.py"]),
        (b"/v1/user/3/x/orders", ["v1/User/[id]/Orders/Get.py"]),
        (b"/v1/nothing/like/this", []),
        (b"/v7/health", []),
        (b"/v1", []),
        (b"/v1/usr", ["v1/User/Get.py"]),
        (b"/v1/helth", ["v1/Health/Get.py"]),
        (b"/v1/user/3/x", ["v1/User/[id]/Get.py"]),
    ],
)
def test_near_misses(table: RouteTable, path: bytes, near: list[str]):
    assert files(table.explain("GET", path))[: len(near)] == near
    assert bool(near) == bool(files(table.explain("GET", path)))


def test_a_static_folder_that_hides_a_route_is_told(table: RouteTable):
    found = table.explain("GET", b"/v1/user/me/orders")
    assert [route.file for route in found.shadowed] == ["v1/User/[id]/Orders/Get.py"]
    hidden = "GET /v1/user/{id}/orders would match, but a static folder is final"
    assert ("hidden", hidden) in words(found)


@pytest.mark.parametrize(
    ("path", "file"),
    [
        (b"/v1/foo", "Api/V1/Foo/Get.py: not under a version folder (vN)"),
        (b"/v1/shop/cart", "Api/v1/Shop/Services/Cart/Get.py: inside non-route folder 'Services'"),
        (b"/foo", "Api/V1/Foo/Get.py: not under a version folder (vN)"),
    ],
)
def test_a_skipped_file_that_was_meant_is_told(table: RouteTable, path: bytes, file: str):
    assert [text for label, text in words(table.explain("GET", path)) if label == "skipped"] == [
        file
    ]


def test_other_versions_are_told(table: RouteTable):
    found = table.explain("POST", b"/v1/user/3")
    assert ("other version", "POST /v2/user/{key}  Api/v2/User/[key]/Post.py") in words(found)


def test_a_path_without_a_version_is_told_so(table: RouteTable):
    found = table.explain("GET", b"/user/3")
    assert found.unversioned
    texts = words(found)
    answer = "404: the path does not begin with a version, and no default_version serves it"
    assert texts[1] == ("answer", answer)
    assert ("other version", "GET /v1/user/{id}  Api/v1/User/[id]/Get.py") in texts
    assert texts[-1] == ("to add it", "treefold create 'v2/user/[id]' get")


def test_a_path_without_a_version_is_walked_in_the_default_version(table: RouteTable):
    found = table.explain("GET", b"/user/3", default_version="v1")
    assert (found.status, found.path, found.unversioned) == (200, "/user/3", True)
    assert words(found)[:2] == [
        ("version", "none in the path, default_version is v1"),
        ("/v1", "is a folder"),
    ]
    assert ("answer", "200, served by Api/v1/User/[id]/Get.py") in words(found)


def test_a_miss_in_the_default_version_is_told_as_one(table: RouteTable):
    found = table.explain("GET", b"/nowhere", default_version="v1")
    assert (found.status, found.create) == (404, "v1/nowhere get")
    assert ("answer", "404: no such path") in words(found)
    assert table.explain("GET", b"/v1/user/3", default_version="v2").default_version == ""


def test_a_socket_is_a_method_too(table: RouteTable):
    assert table.explain("WEBSOCKET", b"/v1/chat").status == 200
    assert table.explain("GET", b"/v1/chat").methods == ("WEBSOCKET",)
    assert table.explain("WEBSOCKET", b"/v1/talk").create == "v1/talk socket"


@pytest.mark.parametrize(
    ("method", "path", "file", "create"),
    [
        ("GET", b"/v1/order/3/line", "v1/Order/[id]/Line/Get.py", "v1/order/[id]/line get"),
        ("GET", b"/v9/x", "v9/X/Get.py", "v9/x get"),
        ("GET", b"/v1/order-line", "v1/order-line/Get.py", ""),
        ("GET", b"/v1/services", "v1/services/Get.py", ""),
        ("GET", b"/v1/Order", "", ""),
        ("GET", b"/v1/a%20b", "", ""),
        ("GET", b"/v1/%3Cscript%3E", "", ""),
        ("GET", b"/v1/$(reboot)", "", ""),
        ("get", b"/v1/order", "", ""),
        ("FETCH", b"/v1/order", "", ""),
        ("GET", b"/", "", ""),
        ("GET", b"/v1" + b"/x" * 70, "", ""),
    ],
)
def test_what_would_add_it(table: RouteTable, method: str, path: bytes, file: str, create: str):
    found = table.explain(method, path)
    assert (found.status, found.file, found.create) == (404, file, create)


def test_where_create_makes_another_url_the_file_is_named(table: RouteTable):
    found = table.explain("GET", b"/v1/order-line")
    assert words(found)[-1] == ("to add it", "make the file Api/v1/order-line/Get.py")
    found = table.explain("GET", b"/v1/Order")
    assert words(found)[-1][1].startswith("no folder can serve this path")


@pytest.mark.parametrize("path", [b"/v1/%ff", b"/v1/%00", b"/v1/x%0a"])
def test_a_path_that_no_client_may_send_is_told_so(table: RouteTable, path: bytes):
    found = table.explain("GET", path)
    assert found.status == 400
    assert words(found) == [("answer", f"400: {found.fault}")]


def test_folders_without_a_file_are_told_so(table: RouteTable):
    texts = dict(words(table.explain("GET", b"/v1/user/3/orders/..")))
    assert texts["/.."] == "matches nothing: there is nothing below"
    assert dict(words(table.explain("GET", b"/v2/user")))["answer"].startswith("404: folders only")


def test_many_siblings_are_cut(table_of: TableOf):
    table = table_of(*(f"v1/S{number:02}/Get.py" for number in range(30)))
    text = words(table.explain("GET", b"/v1/x"))[1][1]
    assert text.endswith("s08, s09, ...")


@given(
    st.lists(st.sampled_from(["v1", "v2", "user", "me", "3", "orders", "x", "%2F", "é", ".."])),
    st.sampled_from(["GET", "POST", "WEBSOCKET", "FETCH"]),
)
def test_an_explanation_agrees_with_the_answer(table: RouteTable, parts: list[str], method: str):
    path = ("/" + "/".join(parts)).encode()
    found = table.explain(method, path)
    socket = method == "WEBSOCKET"
    answer = table.resolve_socket(path) if socket else table.resolve(method, path)
    served = isinstance(answer, Found)
    assert served == (found.route is not None) == (found.status == 200)
    assert not served or (isinstance(answer, Found) and answer.route is found.route)
    assert list(explanation_lines(found))


def test_a_second_file_of_the_route_is_named(table_of: TableOf):
    found = table_of("v1/USER/Get.py", "v1/User/Get.py").explain("GET", b"/v1/user")
    assert (found.status, found.duplicates) == (200, ("v1/USER/Get.py",))
    said = "Api/v1/USER/Get.py has the same method and URL, and is visited earlier"
    assert words(found)[-1] == ("hidden", said)


@pytest.mark.parametrize(
    ("method", "status", "text"),
    [
        ("HEAD", 200, "200, served by Api/v1/User/Get.py (setting auto_head)"),
        ("OPTIONS", 204, "204 with Allow: GET, HEAD, OPTIONS (setting auto_options)"),
    ],
)
def test_methods_that_the_framework_answers_say_so(
    table_of: TableOf, method: str, status: int, text: str
):
    table = table_of("v1/User/Get.py", auto_head=True, auto_options=True)
    found = table.explain(method, b"/v1/user")
    assert (found.status, words(found)[-1]) == (status, ("answer", text))
