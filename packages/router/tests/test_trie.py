"""The trie by itself: which places exist, and how segments choose among them."""

import pytest

from treefold_router import Found, Route
from treefold_router._trie import TrieNode, insert_path, match_path, walk_static_paths


def grown(*paths: str) -> TrieNode:
    root = TrieNode()
    for path in paths:
        node, template, parameters = insert_path(root, path.split("/"))
        node.register_outcome("GET", Found(Route("GET", "v1", template, path, parameters), {}))
    return root


def test_rule_2_folders_that_differ_in_case_are_one_place() -> None:
    root = TrieNode()
    assert insert_path(root, ["v1", "User"])[0] is insert_path(root, ["v1", "USER"])[0]


def test_rule_6_differently_named_brackets_are_one_place() -> None:
    root = TrieNode()
    first = insert_path(root, ["v1", "[id]"])
    assert insert_path(root, ["v1", "[name]"]) == first
    assert first[1:] == ("/v1/{id}", ("id",))


@pytest.mark.parametrize(
    ("segments", "file", "params"),
    [
        ([b"", b"v1", b"user", b"me"], "v1/User/Me", {}),
        ([b"", b"v1", b"user", b"you"], "v1/User/[id]", {"id": "you"}),
        ([b"", b"v1", b"", b"user", b"", b"me", b""], "v1/User/Me", {}),
        ([b"", b"v1", b"user", b"a/b"], "v1/User/[id]", {"id": "a/b"}),
    ],
)
def test_rule_5_a_static_child_goes_before_the_dynamic_one(
    segments: list[bytes], file: str, params: dict[str, str]
) -> None:
    found = match_path(grown("v1/User/Me", "v1/User/[id]"), segments, "GET")
    assert isinstance(found, Found)
    assert (found.route.file, found.params) == (file, params)


@pytest.mark.parametrize(
    "segment", [b".", b"..", b"\xff", b"a\x00", b"\x7f", "\u200b\x1f".encode()]
)
def test_s05_what_is_no_value_ends_the_walk(segment: bytes) -> None:
    assert match_path(grown("v1/[id]"), [b"", b"v1", segment], "GET") is None


def test_a_place_without_the_verb_is_returned_itself() -> None:
    root = grown("v1/[id]")
    place = insert_path(root, ["v1", "[id]"])[0]
    assert match_path(root, [b"", b"v1", b"7"], "PUT") is place


def test_static_places_are_spelled_as_clients_do() -> None:
    root = grown("v1/A b/[id]/C", "v1/D")
    assert {path for path, _ in walk_static_paths(root)} == {b"/v1", b"/v1/a%20b", b"/v1/d"}
