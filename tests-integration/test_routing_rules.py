"""The routing rules of the specification, row by row: what a path in the tree answers to."""

from collections.abc import Mapping

import pytest
from serving import Serve, Served

ECHO = """
async def handler(request):
    return {"file": __file__.rpartition("/Api/")[2], "params": dict(request.path_params)}
"""
ORDINARY = "import sys; print('ordinary code ran', file=sys.stderr)"

TREE = {
    # the four rows of the table
    "Api/v1/User/Role/Get.py": ECHO,
    "Api/v1/User/Role/Post.py": ECHO,
    "Api/v1/User/[id]/Get.py": ECHO,
    "Api/v2/User/Role/Post.py": ECHO,
    # rule 1
    "Api/V1/Upper/Get.py": ECHO,
    "Api/v1.2/Dotted/Get.py": ECHO,
    "Api/v1-beta/Beta/Get.py": ECHO,
    "Api/v/Bare/Get.py": ECHO,
    "Api/v3x/Tail/Get.py": ECHO,
    "Api/v\u0663/Arabic/Get.py": ECHO,
    "Api/v1\n/Newline/Get.py": ECHO,
    "Api/Get.py": ECHO,
    "Api/v10/Ten/Get.py": ECHO,
    "Api/v1/Get.py": ECHO,
    # rule 2
    "Api/v1/CamelCase/snake_Case/Get.py": ECHO,
    "Api/v1/Clash/Get.py": ECHO,
    "Api/v1/clash/Get.py": ECHO,
    "Api/v1/clash/Post.py": ECHO,
    # rule 3
    "Api/v1/Stem/get.py": ECHO,
    "Api/v1/Stem/POST.py": ECHO,
    "Api/v1/Stem/pUt.py": ECHO,
    "Api/v1/Stem/Patch.py": ECHO,
    "Api/v1/Stem/Delete.py": ECHO,
    "Api/v1/Stem/Head.py": ECHO,
    "Api/v1/Stem/Options.py": ECHO,
    "Api/v1/Stem/Trace.py": ORDINARY,
    "Api/v1/Stem/Gets.py": ORDINARY,
    "Api/v1/Stem/schemas.py": ORDINARY,
    "Api/v1/Sock/Socket.py": "async def handler(websocket): ...",
    "Api/v1/Ws/wS.py": "async def handler(websocket): ...",
    "Api/v1/Web/WEBSOCKET.py": "async def handler(websocket): ...",
    # rule 4
    "Api/v1/Param/[userId]/Get.py": ECHO,
    "Api/v1/Inject/[name]/Get.py": "async def handler(name): return {'name': name}",
    "Api/v1/Verbatim/[the user-id]/Get.py": ECHO,
    "Api/v1/Two/[a]/Between/[b]/Get.py": ECHO,
    "Api/v1/Odd/[]/Get.py": ECHO,
    "Api/v1/Odd/x[id]/Get.py": ECHO,
    # rule 5
    "Api/v1/Final/Me/Get.py": ECHO,
    "Api/v1/Final/[id]/Get.py": ECHO,
    "Api/v1/Final/[id]/Posts/Get.py": ECHO,
    # rule 6
    "Api/v1/Names/[alpha]/Get.py": ECHO,
    "Api/v1/Names/[beta]/Post.py": ECHO,
    # rule 7
    "Api/v1/Opt/Services/Get.py": ORDINARY,
    "Api/v1/Opt/Services/Deep/Get.py": ORDINARY,
    "Api/v1/Opt/services/Get.py": ECHO,
    "Api/v1/Opt/__pycache__/Get.py": ORDINARY,
    # rule 8
    "Api/v1/Sp ace/[id]/Get.py": ECHO,
    "Api/v1/\u00dcber/Get.py": ECHO,
}


@pytest.fixture(scope="module")
def app(serve: Serve) -> Served:
    return serve(TREE)


def check(app: Served, method: str, target: str, file: str, params: Mapping[str, str]) -> None:
    answer = app.request(method, target)
    assert answer.status == 200
    assert answer.json() == {"file": file, "params": params}


@pytest.mark.parametrize(
    ("method", "target", "file", "params"),
    [
        ("GET", "/v1/user/role", "v1/User/Role/Get.py", {}),
        ("POST", "/v1/user/role", "v1/User/Role/Post.py", {}),
        ("GET", "/v1/user/42", "v1/User/[id]/Get.py", {"id": "42"}),
        ("POST", "/v2/user/role", "v2/User/Role/Post.py", {}),
    ],
)
def test_table_row(
    app: Served, method: str, target: str, file: str, params: dict[str, str]
) -> None:
    check(app, method, target, file, params)


@pytest.mark.parametrize(
    "target",
    [
        "/V1/upper",
        "/v1.2/dotted",
        "/v1-beta/beta",
        "/v/bare",
        "/v3x/tail",
        "/v%D9%A3/arabic",
        "/",
        "/upper",
    ],
)
def test_rule_1_what_is_not_under_a_version_folder_is_not_served(app: Served, target: str) -> None:
    assert app.get(target).status == 404


@pytest.mark.parametrize(
    "file",
    [
        "V1/Upper/Get.py",
        "v1.2/Dotted/Get.py",
        "v1-beta/Beta/Get.py",
        "v/Bare/Get.py",
        "v3x/Tail/Get.py",
        "v\u0663/Arabic/Get.py",
        r"v1\n/Newline/Get.py",
        "Get.py",
    ],
)
def test_rule_1_the_boot_log_gives_the_reason_for_a_skipped_file(app: Served, file: str) -> None:
    wanted = f"skipped {file}: not under a version folder (vN)"
    assert app.wait_for(lambda lines: [line for line in lines if wanted in line])


def test_rule_1_a_version_may_have_many_digits(app: Served) -> None:
    check(app, "GET", "/v10/ten", "v10/Ten/Get.py", {})


def test_rule_1_a_file_directly_in_a_version_folder_answers_at_the_version(app: Served) -> None:
    check(app, "GET", "/v1", "v1/Get.py", {})


def test_rule_2_folders_are_lower_cased(app: Served) -> None:
    target = "/v1/camelcase/snake_case"
    check(app, "GET", target, "v1/CamelCase/snake_Case/Get.py", {})


@pytest.mark.parametrize("target", ["/v1/CamelCase/snake_Case", "/v1/USER/role", "/v1/User/Role"])
def test_rule_2_request_segments_are_compared_as_they_are(app: Served, target: str) -> None:
    assert app.get(target).status == 404


def test_rule_2_the_file_visited_later_replaces_the_handler(app: Served) -> None:
    check(app, "GET", "/v1/clash", "v1/clash/Get.py", {})


def test_rule_2_folders_that_differ_only_in_case_serve_one_position(app: Served) -> None:
    check(app, "POST", "/v1/clash", "v1/clash/Post.py", {})


@pytest.mark.parametrize(
    ("method", "file"),
    [
        ("GET", "get.py"),
        ("POST", "POST.py"),
        ("PUT", "pUt.py"),
        ("PATCH", "Patch.py"),
        ("DELETE", "Delete.py"),
        ("OPTIONS", "Options.py"),
    ],
)
def test_rule_3_the_stem_is_the_method_in_any_case(app: Served, method: str, file: str) -> None:
    check(app, method, "/v1/stem", f"v1/Stem/{file}", {})


def test_rule_3_a_head_file_answers_without_a_body(app: Served) -> None:
    answer = app.request("HEAD", "/v1/stem")
    assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize("target", ["/v1/sock", "/v1/ws", "/v1/web"])
def test_rule_3_socket_stems_are_the_pseudo_method_websocket(app: Served, target: str) -> None:
    answer = app.get(target)
    assert (answer.status, answer.value("allow")) == (405, "WEBSOCKET")


def test_rule_3_any_other_stem_is_ordinary_code(app: Served) -> None:
    answer = app.request("TRACE", "/v1/stem")
    assert answer.status == 405
    assert answer.value("allow") == "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT"


def test_rule_3_ordinary_code_is_never_imported(app: Served) -> None:
    def until_booted(lines: list[str]) -> list[str]:
        return lines[:] if any("booted in" in line for line in lines) else []

    assert "ordinary code ran" not in app.wait_for(until_booted)


def test_rule_4_the_name_keeps_its_case(app: Served) -> None:
    check(app, "GET", "/v1/param/7", "v1/Param/[userId]/Get.py", {"userId": "7"})


def test_rule_4_a_name_that_is_an_identifier_works_as_a_handler_parameter(app: Served) -> None:
    assert app.get("/v1/inject/ann%20b").json() == {"name": "ann b"}


def test_rule_4_any_other_name_is_read_from_path_params(app: Served) -> None:
    file = "v1/Verbatim/[the user-id]/Get.py"
    check(app, "GET", "/v1/verbatim/9", file, {"the user-id": "9"})


def test_rule_4_a_path_may_have_several_parameters(app: Served) -> None:
    file = "v1/Two/[a]/Between/[b]/Get.py"
    check(app, "GET", "/v1/two/1/between/2", file, {"a": "1", "b": "2"})


@pytest.mark.parametrize(
    ("target", "file"),
    [("/v1/odd/%5B%5D", "v1/Odd/[]/Get.py"), ("/v1/odd/x%5Bid%5D", "v1/Odd/x[id]/Get.py")],
)
def test_rule_4_brackets_around_nothing_or_a_part_are_a_static_segment(
    app: Served, target: str, file: str
) -> None:
    check(app, "GET", target, file, {})


def test_rule_5_a_static_segment_wins(app: Served) -> None:
    check(app, "GET", "/v1/final/me", "v1/Final/Me/Get.py", {})


def test_rule_5_any_other_value_is_the_parameter(app: Served) -> None:
    check(app, "GET", "/v1/final/you", "v1/Final/[id]/Get.py", {"id": "you"})


def test_rule_5_a_static_segment_that_matches_is_final(app: Served) -> None:
    assert app.get("/v1/final/me/posts").status == 404
    check(app, "GET", "/v1/final/you/posts", "v1/Final/[id]/Posts/Get.py", {"id": "you"})


@pytest.mark.parametrize(
    ("method", "file"), [("GET", "[alpha]/Get.py"), ("POST", "[beta]/Post.py")]
)
def test_rule_6_the_first_name_visited_holds_for_every_method(
    app: Served, method: str, file: str
) -> None:
    check(app, method, "/v1/names/x", f"v1/Names/{file}", {"alpha": "x"})


@pytest.mark.parametrize(
    "target", ["/v1/opt/services/deep", "/v1/opt/__pycache__", "/v1/opt/Services"]
)
def test_rule_7_opt_out_folders_are_not_served(app: Served, target: str) -> None:
    assert app.get(target).status == 404


@pytest.mark.parametrize("name", ["Services", "__pycache__"])
def test_rule_7_the_boot_log_gives_the_reason(app: Served, name: str) -> None:
    wanted = f"skipped v1/Opt/{name}/Get.py: inside non-route folder '{name}'"
    assert app.wait_for(lambda lines: [line for line in lines if wanted in line])


def test_rule_7_is_case_sensitive(app: Served) -> None:
    check(app, "GET", "/v1/opt/services", "v1/Opt/services/Get.py", {})


@pytest.mark.parametrize(
    ("target", "params"),
    [
        ("/v1/user/a%20b", {"id": "a b"}),
        ("/v1/user/a+b", {"id": "a+b"}),
        ("/v1/user/caf%C3%A9", {"id": "caf\u00e9"}),
        ("/v1/user/%F0%9F%8C%B3", {"id": "\U0001f333"}),
        ("/v1/user/100%25", {"id": "100%"}),
        ("/v1/user/42/", {"id": "42"}),
        ("/v1//user///42", {"id": "42"}),
        ("//v1//user//42//", {"id": "42"}),
        ("/v1/us%65r/%34%32", {"id": "42"}),
        ("/v1/user/42?id=43", {"id": "42"}),
        ("/v1/user/%3Fa=b", {"id": "?a=b"}),
        ("/v1/user/...", {"id": "..."}),
    ],
)
def test_rule_8_segments_are_decoded_and_empty_ones_dropped(
    app: Served, target: str, params: dict[str, str]
) -> None:
    check(app, "GET", target, "v1/User/[id]/Get.py", params)


@pytest.mark.parametrize(
    ("target", "file"),
    [
        ("/v1/user/role/", "v1/User/Role/Get.py"),
        ("/v1//user//role", "v1/User/Role/Get.py"),
        ("/%76%31/user/rol%65", "v1/User/Role/Get.py"),
        ("/v1/%C3%BCber", "v1/\u00dcber/Get.py"),
    ],
)
def test_rule_8_holds_for_static_segments_too(app: Served, target: str, file: str) -> None:
    check(app, "GET", target, file, {})


def test_rule_8_a_folder_with_a_space_is_reached_by_its_encoding(app: Served) -> None:
    check(app, "GET", "/v1/sp%20ace/1", "v1/Sp ace/[id]/Get.py", {"id": "1"})
