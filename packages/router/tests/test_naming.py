"""Rules 1 to 4 on single names."""

import pytest
from hypothesis import given, strategies as st

from treefold_router import METHODS, method_of, parameter_name, segment_of, version_number
from treefold_router._naming import is_version_name


def test_the_seven_methods_are_the_specifications() -> None:
    assert METHODS == ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")


@pytest.mark.parametrize("stem", ["Get", "get", "GET", "gEt"])
def test_rule_3_a_stem_is_a_method_in_any_case(stem: str) -> None:
    assert method_of(stem) == "GET"


@pytest.mark.parametrize("method", METHODS)
def test_rule_3_every_method_has_a_stem(method: str) -> None:
    assert method_of(method.title()) == method


@pytest.mark.parametrize("stem", ["Socket", "Ws", "Websocket", "WS", "webSocket", "SOCKET"])
def test_rule_3_socket_stems_are_the_pseudo_method(stem: str) -> None:
    assert method_of(stem) == "WEBSOCKET"


@pytest.mark.parametrize(
    "stem", ["", "Gets", "Get ", " Get", "Get.test", "__init__", "Trace", "Connect", "Get\n"]
)
def test_rule_3_any_other_stem_is_ordinary(stem: str) -> None:
    assert method_of(stem) is None


@pytest.mark.parametrize("stem", ["po\u017ft", "opt\u0131ons", "w\u017f"])
def test_s10_letters_that_only_upper_case_to_a_method_are_ordinary(stem: str) -> None:
    assert method_of(stem) is None


@pytest.mark.parametrize(
    ("name", "number"),
    [("v1", 1), ("v10", 10), ("v0", 0), ("v01", 1), ("v" + "9" * 254, 10**254 - 1)],
)
def test_rule_1_a_version_is_v_and_digits(name: str, number: int) -> None:
    assert version_number(name) == number


@pytest.mark.parametrize(
    "name",
    ["", "v", "V1", "v1.2", "v1-beta", "1", "vv1", " v1", "v1 ", "v+1", "v1_0", "v\u0663", "v1\n"],
)
def test_s09_rule_1_nothing_else_is_a_version(name: str) -> None:
    assert version_number(name) is None
    assert not is_version_name(name)


def test_s09_digits_beyond_any_file_name_have_no_number_but_stay_a_version() -> None:
    name = "v" + "9" * 5000
    assert version_number(name) is None
    assert is_version_name(name)


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("[id]", "id"),
        ("[userId]", "userId"),
        ("[a-b]", "a-b"),
        ("[ ]", " "),
        ("[\u00e9]", "\u00e9"),
    ],
)
def test_rule_4_a_bracket_folder_names_a_parameter_verbatim(folder: str, name: str) -> None:
    assert parameter_name(folder) == name


@pytest.mark.parametrize(
    "folder", ["id", "[]", "[id", "id]", "[[id]]", "[a][b]", "x[id]", "[id]x", "[id]\n", ""]
)
def test_rule_4_other_folders_name_none(folder: str) -> None:
    assert parameter_name(folder) is None


@pytest.mark.parametrize(
    ("folder", "segment"),
    [("User", "user"), ("ROLE", "role"), ("a.B", "a.b"), ("\u00c9t", "\u00e9t")],
)
def test_rule_2_a_static_folder_is_its_name_in_lower_case(folder: str, segment: str) -> None:
    assert segment_of(folder) == segment


@given(st.text())
def test_no_name_raises(name: str) -> None:
    known = method_of(name)
    assert known is None or known in (*METHODS, "WEBSOCKET")
    parameter = parameter_name(name)
    assert parameter is None or f"[{parameter}]" == name
    number = version_number(name)
    assert number is None or int(name[1:]) == number
    assert segment_of(name) == name.lower()
