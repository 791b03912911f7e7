"""Outcomes of a resolution: rules 5 and 8, refusals, hostile paths and verbs."""

import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

import pytest
from hypothesis import example, given, strategies as st

from treefold_router import (
    METHODS,
    AutoOptions,
    Found,
    MalformedPath,
    MethodNotAllowed,
    NotFound,
    RouteTable,
)
from treefold_router._scan import Entry, Listing

TableOf = Callable[..., RouteTable]

FILES = (
    "v1/Get.py",
    "v1/User/Get.py",
    "v1/User/Post.py",
    "v1/User/Me/Get.py",
    "v1/User/[id]/Get.py",
    "v1/User/[id]/Posts/Get.py",
    "v1/Item/[id]/Get.py",
    "v1/Item/[id]/Secret/Get.py",
    "v1/Chat/Ws.py",
    "v1/Room/[name]/Ws.py",
    "v1/Room/[name]/Get.py",
    "v1/A b/\u00c9t\u00e9/Get.py",
    "v1/Twice/[id]/[id]/Get.py",
    "v2/User/Put.py",
    "v10/User/Get.py",
)


@pytest.fixture(scope="module")
def table(table_of: TableOf) -> RouteTable:
    return table_of(*FILES)


def hit(table: RouteTable, method: str, path: bytes | str) -> tuple[str, dict[str, str]]:
    found = table.resolve(method, path)
    assert isinstance(found, Found), found
    return found.route.template, dict(found.params)


@pytest.mark.parametrize(
    ("method", "path", "template", "params"),
    [
        ("GET", b"/v1", "/v1", {}),
        ("GET", b"/v1/user", "/v1/user", {}),
        ("POST", b"/v1/user", "/v1/user", {}),
        ("PUT", b"/v2/user", "/v2/user", {}),
        ("GET", b"/v1/user/42", "/v1/user/{id}", {"id": "42"}),
        ("GET", b"/v1/user/42/posts", "/v1/user/{id}/posts", {"id": "42"}),
        ("GET", b"/v1/a%20b/%C3%A9t%C3%A9", "/v1/a b/\u00e9t\u00e9", {}),
        ("GET", "/v1/a b/\u00e9t\u00e9".encode(), "/v1/a b/\u00e9t\u00e9", {}),
    ],
)
def test_a_handler_exists_for_this_method_and_path(
    table: RouteTable, method: str, path: bytes, template: str, params: dict[str, str]
) -> None:
    assert hit(table, method, path) == (template, params)


def test_a_static_route_is_answered_with_one_shared_value(table: RouteTable) -> None:
    found = table.resolve("GET", b"/v1/user")
    assert found is table.resolve("GET", b"/v1/user")
    assert found is table.resolve("GET", b"/v1//user/")


def test_the_empty_parameters_of_a_static_route_cannot_be_filled(table: RouteTable) -> None:
    found = table.resolve("GET", b"/v1/user")
    assert isinstance(found, Found)
    with pytest.raises(TypeError, match="does not support item assignment"):
        found.params["id"] = "1"  # pyright: ignore[reportIndexIssue] the very thing to refuse


def test_rule_5_a_static_child_wins(table: RouteTable) -> None:
    assert hit(table, "GET", b"/v1/user/me") == ("/v1/user/me", {})


@pytest.mark.parametrize("path", [b"/v1/user/me/posts", b"/v1/user/%6De/posts"])
def test_rule_5_a_static_child_is_final(table: RouteTable, path: bytes) -> None:
    assert table.resolve("GET", path) == NotFound(unversioned=False)


def test_rule_5_a_method_missing_at_the_static_child_is_not_looked_for_elsewhere(
    table_of: TableOf,
) -> None:
    table = table_of("v1/User/Me/Get.py", "v1/User/[id]/Put.py")
    assert table.resolve("PUT", b"/v1/user/me") == MethodNotAllowed("GET")


def test_of_repeated_parameter_names_the_deepest_wins(table: RouteTable) -> None:
    assert hit(table, "GET", b"/v1/twice/1/2") == ("/v1/twice/{id}/{id}", {"id": "2"})


@pytest.mark.parametrize(
    "path",
    [b"//v1//user", b"/v1/user/", b"/v1/user//", b"/v1/%75ser", b"/v1/us%65r", b"//%761/user"],
)
def test_s06_rule_8_other_spellings_reach_the_same_route(table: RouteTable, path: bytes) -> None:
    assert hit(table, "GET", path) == ("/v1/user", {})


@pytest.mark.parametrize("path", [b"/v1/User", b"/v1/USER", b"/V1/user", b"/v1/%55ser"])
def test_s06_segments_of_a_request_are_never_lower_cased(table: RouteTable, path: bytes) -> None:
    assert isinstance(table.resolve("GET", path), NotFound)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (b"/v1/item/x%2Fsecret", "x/secret"),
        (b"/v1/item/a%252Fb", "a%2Fb"),
        (b"/v1/item/%252e%252e", "%2e%2e"),
        (b"/v1/item/100%", "100%"),
        (b"/v1/item/%zz", "%zz"),
        (b"/v1/item/a+b", "a+b"),
        (b"/v1/item/a;b=c", "a;b=c"),
        (b"/v1/item/...", "..."),
        (b"/v1/item/.hidden", ".hidden"),
        (b"/v1/item/..%2F..", "../.."),
        (b"/v1/item/%E2%82%AC", "\u20ac"),
        ("/v1/item/\u20ac".encode(), "\u20ac"),
        (b"/v1/item/\xe2%82%ac", "\u20ac"),
        (b"/v1/item/%C2%85", "\x85"),
        (b"/v1/item/%E2%80%8B", "\u200b"),
        (b"/v1/item/[id]", "[id]"),
        (b"/v1/item/%20", " "),
    ],
)
def test_s01_s02_a_value_is_decoded_once_within_its_segment(
    table: RouteTable, path: bytes, value: str
) -> None:
    assert hit(table, "GET", path) == ("/v1/item/{id}", {"id": value})


@pytest.mark.parametrize(
    "path",
    [b"/v1/item/%ff%fe", b"/v1/item/..%c0%afx", b"/v1/item/%ed%a0%80", b"/v1/item/\xff",
     b"/nowhere/%ff", b"/v1/nowhere/x/\xff", b"/v1/user/%c3/posts", "/v1/item/\udcff", "/\ud800"],
)  # fmt: skip
def test_s03_what_is_not_utf8_is_malformed(table: RouteTable, path: bytes | str) -> None:
    assert table.resolve("GET", path) == MalformedPath(
        "Path is not valid UTF-8 once it is percent-decoded"
    )


@pytest.mark.parametrize(
    "path",
    [b"/v1/item/a%00b", b"/v1/user%0a", b"/v1/item/%0d", b"/v1/item/%7f", b"/v1/item/a\x01", b"/\t",
     b"/v1/item/a\n", b"/nowhere%1f", "/v1/item/a\x00", "/v1/item/\x7f"],
)  # fmt: skip
def test_s04_a_control_character_is_malformed(table: RouteTable, path: bytes | str) -> None:
    assert table.resolve("GET", path) == MalformedPath("Path holds a control character")


@pytest.mark.parametrize("path", [b"", b"v1/user", b"*", b"%2Fv1/user", b"v1", "", "v1/user"])
def test_a_path_that_does_not_start_with_a_slash_is_malformed(
    table: RouteTable, path: bytes | str
) -> None:
    assert table.resolve("GET", path) == MalformedPath("Path does not start with '/'")
    assert table.resolve("GET", path, version="v1") == MalformedPath("Path does not start with '/'")


@pytest.mark.parametrize(
    "path",
    [b"/v1/user/../item/1", b"/v1/user/%2e%2e/item/1", b"/v1/./user", b"/v1/user/.", b"/v1/user/..",
     b"/v1/item/%2e", b"/v1/item/.%2E", b"/v1/item/../secret", "/v1/item/.."],
)  # fmt: skip
def test_s05_a_dot_segment_leads_nowhere(table: RouteTable, path: bytes | str) -> None:
    assert table.resolve("GET", path) == NotFound(unversioned=False)


@pytest.mark.parametrize(
    ("path", "unversioned"),
    [
        (b"/v1/nothing", False),
        (b"/v99/user", False),
        (b"/v" + b"9" * 5000, False),
        (b"/%76999/user", False),
        (b"/v1/item", False),
        (b"/", True),
        (b"//", True),
        (b"/user", True),
        (b"/V1/user", True),
        (b"/v1.2/user", True),
        ("/v\u0663/user".encode(), True),
        (b"/../v1/user", True),
        ("/user", True),
    ],
)
def test_the_path_exists_for_no_method(
    table: RouteTable, path: bytes | str, unversioned: bool
) -> None:
    assert table.resolve("GET", path) == NotFound(unversioned=unversioned)


@pytest.mark.parametrize("segment", [b"x/", b"%78/", b"../", b"%ff/"])
def test_s18_a_path_of_ten_thousand_segments_is_refused_fast(
    table: RouteTable, segment: bytes
) -> None:
    path = b"/v1/" + segment * 10_000
    outcome = table.resolve("GET", path)
    spent: list[float] = []
    for _ in range(5):
        start = time.process_time()
        table.resolve("GET", path)
        spent.append(time.process_time() - start)
    assert isinstance(outcome, MalformedPath if b"%ff" in segment else NotFound)
    assert min(spent) < 0.005


def test_s18_the_deepest_route_is_reached(table_of: TableOf) -> None:
    table = table_of("v1/" + "[x]/" * 63 + "Get.py")
    assert hit(table, "GET", b"/v1" + b"/7" * 63)[1] == {"x": "7"}
    assert table.resolve("GET", b"/v1" + b"/7" * 64) == NotFound(unversioned=False)


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("PUT", b"/v1/user", "GET, POST"),
        ("PUT", b"/v1//user/", "GET, POST"),
        ("DELETE", b"/v1/user/42", "GET"),
        ("HEAD", b"/v1/user", "GET, POST"),
        ("OPTIONS", b"/v1/user", "GET, POST"),
        ("GET", b"/v1/chat", "WEBSOCKET"),
        ("POST", b"/v1/room/x", "GET, WEBSOCKET"),
        ("GET", b"/v2/user", "PUT"),
    ],
)
def test_s12_the_path_exists_for_other_methods(
    table: RouteTable, method: str, path: bytes, allow: str
) -> None:
    assert table.resolve(method, path) == MethodNotAllowed(allow)


VERBS = ("FOO", "get", "Get", "TRACE", "CONNECT", "__class__", "WEBSOCKET", "websocket", "", "GET ")


@pytest.mark.parametrize("verb", VERBS)
def test_s10_no_other_verb_is_dispatched(table: RouteTable, verb: str) -> None:
    assert table.resolve(verb, b"/v1/room/x") == MethodNotAllowed("GET, WEBSOCKET")
    assert table.resolve(verb, b"/v1/chat") == MethodNotAllowed("WEBSOCKET")
    assert table.resolve(verb, b"/v1/nothing") == NotFound(unversioned=False)


def test_s12_auto_head_answers_with_the_get_route(table_of: TableOf) -> None:
    table = table_of("v1/User/Get.py", "v1/User/[id]/Get.py", "v1/Job/Post.py", auto_head=True)
    assert table.resolve("HEAD", b"/v1/user") is table.resolve("GET", b"/v1/user")
    assert hit(table, "HEAD", b"/v1/user/7") == ("/v1/user/{id}", {"id": "7"})
    assert table.resolve("PUT", b"/v1/user") == MethodNotAllowed("GET, HEAD")
    assert table.resolve("HEAD", b"/v1/job") == MethodNotAllowed("POST")


def test_s12_a_head_file_goes_before_auto_head(table_of: TableOf) -> None:
    table = table_of("v1/Get.py", "v1/Head.py", auto_head=True)
    found = table.resolve("HEAD", b"/v1")
    assert isinstance(found, Found)
    assert found.route.file == "v1/Head.py"


def test_s12_auto_options_answers_where_the_path_exists(table_of: TableOf) -> None:
    table = table_of("v1/User/Get.py", "v1/Chat/Ws.py", "v1/[x]/Put.py", auto_options=True)
    assert table.resolve("OPTIONS", b"/v1/user") == AutoOptions("GET, OPTIONS")
    assert table.resolve("OPTIONS", b"/v1/chat") == AutoOptions("OPTIONS, WEBSOCKET")
    assert table.resolve("OPTIONS", b"/v1/7") == AutoOptions("OPTIONS, PUT")
    assert table.resolve("PUT", b"/v1/user") == MethodNotAllowed("GET, OPTIONS")
    assert table.resolve("OPTIONS", b"/v1") == NotFound(unversioned=False)
    assert table.resolve("options", b"/v1/user") == MethodNotAllowed("GET, OPTIONS")


def test_s14_options_of_the_server_as_a_whole_is_well_formed_and_no_route(
    table_of: TableOf,
) -> None:
    files = ("v1/User/Get.py", "v1/Chat/Ws.py", "v2/Post.py")
    plain = table_of(*files)
    every = table_of(*files, auto_options=True, auto_head=True)
    for path in (b"*", "*"):
        assert plain.resolve("OPTIONS", path) == NotFound(unversioned=False)
        assert every.resolve("OPTIONS", path) == AutoOptions("GET, HEAD, OPTIONS, POST, WEBSOCKET")
        assert plain.resolve("GET", path) == MalformedPath("Path does not start with '/'")
    assert every.resolve("OPTIONS", b"**") == MalformedPath("Path does not start with '/'")


def test_s12_an_options_file_goes_before_auto_options(table_of: TableOf) -> None:
    table = table_of("v1/Options.py", "v1/Get.py", auto_options=True)
    assert hit(table, "OPTIONS", b"/v1") == ("/v1", {})


@pytest.mark.parametrize(
    ("version", "path", "outcome"),
    [
        ("v10", b"/user", "/v10/user"),
        ("v10", "/user", "/v10/user"),
        ("v1", b"/user/7", "/v1/user/{id}"),
        ("v1", b"/", "/v1"),
        ("v1", b"//user/", "/v1/user"),
    ],
)
def test_s07_a_whole_path_is_resolved_below_a_version(
    table: RouteTable, version: str, path: bytes | str, outcome: str
) -> None:
    found = table.resolve("GET", path, version=version)
    assert isinstance(found, Found)
    assert found.route.template == outcome


@pytest.mark.parametrize(
    ("version", "path", "outcome"),
    [
        ("v10", b"/nothing", NotFound(unversioned=False)),
        ("v10", b"/v99/user", NotFound(unversioned=False)),
        ("v10", b"/v10/user", NotFound(unversioned=False)),
        ("v10", b"/V10/user", NotFound(unversioned=False)),
        ("v99", b"/user", NotFound(unversioned=False)),
        ("v1/user", b"/me", NotFound(unversioned=False)),
        ("v2", b"/user", MethodNotAllowed("PUT")),
        ("v1", b"/item/%ff", MalformedPath("Path is not valid UTF-8 once it is percent-decoded")),
    ],
)
def test_s07_a_refusal_below_a_version_is_complete(
    table: RouteTable, version: str, path: bytes, outcome: object
) -> None:
    assert table.resolve("GET", path, version=version) == outcome


def test_text_is_not_decoded_again(table: RouteTable) -> None:
    assert hit(table, "GET", "/v1/item/a%2Fb") == ("/v1/item/{id}", {"id": "a%2Fb"})
    assert hit(table, "GET", "/v1/item/\u20ac")[1] == {"id": "\u20ac"}
    assert table.resolve("GET", "/v1/%75ser") == NotFound(unversioned=False)
    assert table.resolve("GET", "/v1/user") is table.resolve("GET", b"/v1/user")


@pytest.mark.parametrize(
    ("path", "template", "params"),
    [
        (b"/v1/chat", "/v1/chat", {}),
        (b"/v1/chat/", "/v1/chat", {}),
        ("/v1/chat", "/v1/chat", {}),
        (b"/v1/room/a%20b", "/v1/room/{name}", {"name": "a b"}),
    ],
)
def test_a_handshake_finds_the_socket_route(
    table: RouteTable, path: bytes | str, template: str, params: dict[str, str]
) -> None:
    found = table.resolve_socket(path)
    assert isinstance(found, Found)
    assert (found.route.method, found.route.template) == ("WEBSOCKET", template)
    assert found.params == params


@pytest.mark.parametrize(
    ("path", "outcome"),
    [
        (b"/v1/user", MethodNotAllowed("GET, POST")),
        (b"/v1/item", NotFound(unversioned=False)),
        (b"/chat", NotFound(unversioned=True)),
        (b"/v1/room/%00", MalformedPath("Path holds a control character")),
        (b"v1/chat", MalformedPath("Path does not start with '/'")),
    ],
)
def test_a_handshake_elsewhere_is_refused(table: RouteTable, path: bytes, outcome: object) -> None:
    assert table.resolve_socket(path) == outcome


def test_s07_a_handshake_is_resolved_below_a_version(table: RouteTable) -> None:
    assert table.resolve_socket(b"/chat", version="v1") is table.resolve_socket(b"/v1/chat")
    assert table.resolve_socket(b"/chat", version="v9") == NotFound(unversioned=False)
    assert table.resolve_socket(b"chat", version="v1") == MalformedPath(
        "Path does not start with '/'"
    )


def reference(files: tuple[str, ...], method: str, path: bytes) -> object:
    """The outcome by the letter of the rules, with nothing but comparisons of lists."""
    if path[:1] != b"/":
        return "malformed"
    raw = [unquote_to_bytes(part) for part in path.split(b"/") if part][:65]
    try:
        segments = [part.decode() for part in raw]
    except UnicodeDecodeError:
        return "malformed"
    if any(ord(c) < 32 or ord(c) == 127 for segment in segments for c in segment):
        return "malformed"
    left = [(file.split("/")[:-1], file) for file in files]
    params: dict[str, str] = {}
    for depth, segment in enumerate(segments):
        below = [(folders, file) for folders, file in left if len(folders) > depth]
        left = [(fs, file) for fs, file in below if fs[depth].lower() == segment]
        if not left and segment not in (".", ".."):
            left = [(fs, file) for fs, file in below if fs[depth][0] == "["]
            params |= {fs[depth][1:-1]: segment for fs, _ in left}
    here = [file for folders, file in left if len(folders) == len(segments)]
    stems = {file.rpartition("/")[2][:-3].upper().replace("WS", "WEBSOCKET"): file for file in here}
    if not stems:
        return "nowhere"
    if method in METHODS and method in stems:
        return stems[method], params
    return ", ".join(sorted(stems))


@pytest.mark.parametrize(
    ("path", "version", "template"),
    [
        (b"/v1/user", None, "/v1/user"),
        ("/v1/user", None, "/v1/user"),
        (b"//v1/user/%37/", None, "/v1/user/{id}"),
        (b"/v1/chat", None, "/v1/chat"),
        (b"/user/7", "v1", "/v1/user/{id}"),
        (b"/user/7", "v99", None),
        (b"/v1/nowhere", None, None),
        (b"/v1/user/%ff", None, None),
        (b"", None, None),
    ],
)
def test_a_path_tells_its_template_whatever_the_method(
    table: RouteTable, path: bytes | str, version: str | None, template: str | None
) -> None:
    route = table.route_at(path, version)

    assert (route and route.template) == template


def told(outcome: object) -> object:
    match outcome:
        case Found(route, params):
            return route.file, dict(params)
        case MethodNotAllowed(allow):
            return allow
        case NotFound():
            return "nowhere"
        case _:
            return "malformed"


pieces = st.sampled_from(
    [b"v1", b"v10", b"user", b"me", b"item", b"secret", b"room", b"chat", b"twice", b"posts", b"7",
     b"", b".", b"..", b"%2e", b"%2F", b"%00", b"%ff", b"\xff", b"\x7f", b"%", b"%75ser", b"USER"]
)  # fmt: skip
paths = st.one_of(
    st.lists(pieces, max_size=6).map(lambda parts: b"/" + b"/".join(parts)),
    st.lists(pieces, max_size=6).map(lambda parts: b"/v1/" + b"/".join(parts)),
    st.binary(max_size=20),
    st.binary(max_size=12).map(lambda tail: b"/v1/item/" + tail),
)


@given(st.sampled_from([*METHODS, *VERBS]), paths)
@example("GET", b"/v1/item/\xc3%a9")
def test_every_path_resolves_as_the_rules_say(method: str, path: bytes) -> None:
    assert told(TABLE.resolve(method, path)) == reference(FILES, method, path)


TABLE = RouteTable(Path("Api"), Listing(tuple(Entry(tuple(file.split("/"))) for file in FILES)))


@given(st.text(), st.one_of(st.text(), st.binary()), st.sampled_from([None, "v1", "v9", ""]))
def test_no_input_raises(method: str, path: str | bytes, version: str | None) -> None:
    kinds = (Found, MethodNotAllowed, NotFound, MalformedPath)
    assert isinstance(TABLE.resolve(method, path, version=version), kinds)
    assert isinstance(TABLE.resolve_socket(path, version=version), kinds)


# Everything a client may send as one segment: no control character, no surrogate, no dots alone.
values = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=[*map(chr, range(32)), "\x7f"]),
    min_size=1,
).filter(lambda value: value not in (".", ".."))


@given(values)
def test_any_value_sent_encoded_arrives_as_it_is(value: str) -> None:
    found = TABLE.resolve("GET", b"/v1/room/" + quote(value, safe="").encode())
    assert isinstance(found, Found)
    assert found.params == {"name": value}


def names_folder(name: str) -> bool:
    """Return True for a folder that holds routes, and is no parameter."""
    return "/" not in name and name.lower() == name and "[" not in name and name != "__pycache__"


@given(values.filter(names_folder))
def test_any_folder_name_is_reached_by_its_encoded_name(name: str) -> None:
    table = RouteTable(Path("Api"), Listing((Entry(("v1", name, "Get.py")),)))
    plain = quote(name, safe="").encode()
    shouted = b"".join(b"%%%02X" % byte for byte in name.encode())
    assert isinstance(table.resolve("GET", b"/v1/" + plain), Found)
    assert table.resolve("GET", b"/v1/" + shouted) is table.resolve("GET", b"/v1/" + plain)


SEGMENT = st.sampled_from(
    (
        b"v1",
        b"user",
        b"me",
        b"item",
        b"twice",
        b"42",
        b"a-b",
        b"%41",
        b"%2F",
        b".",
        b"..",
        b"",
        b"\xff",
    )
)


@given(st.lists(SEGMENT, max_size=5), st.sampled_from(("GET", "POST", "WEBSOCKET", "get")))
@example([b"v1", b"user", b"42"], "GET")
@example([b"v1", b"user", b"me"], "POST")
def test_the_short_ways_answer_as_the_whole_walk_does(
    table: RouteTable, segments: list[bytes], method: str
) -> None:
    path = b"/" + b"/".join(segments)

    # A doubled slash says the same and is in no dictionary of whole paths.
    assert table.resolve(method, path) == table.resolve(method, b"/" + path)
