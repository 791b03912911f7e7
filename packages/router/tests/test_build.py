"""Rules 2 and 6, visiting order, duplicates and versions."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from treefold_router import Duplicate, Found, RouteTable
from treefold_router._scan import Entry, Listing

TableOf = Callable[..., RouteTable]


def served(table: RouteTable, method: str, path: bytes) -> str:
    found = table.resolve(method, path)
    assert isinstance(found, Found)
    return found.route.file


@pytest.mark.parametrize(
    ("files", "winner"),
    [
        (("v1/User/Get.py", "v1/user/Get.py"), "v1/user/Get.py"),
        (("v1/user/Get.py", "v1/USER/Get.py"), "v1/user/Get.py"),
        (("v1/User/GET.py", "v1/User/Get.py", "v1/User/get.py"), "v1/User/get.py"),
        # A folder sorts by its own name, not by the whole path as text ('-' is below '/').
        (("v1/User/X/Get.py", "v1/user/x/Get.py", "v1/user-x/Get.py"), "v1/user/x/Get.py"),
    ],
)
def test_s19_rule_2_the_file_visited_later_serves(
    table_of: TableOf, files: tuple[str, ...], winner: str
) -> None:
    table = table_of(*files)
    route = next(route for route in table.routes if route.file == winner)
    assert served(table, route.method, route.template.encode()) == winner


def test_s19_rule_2_a_duplicate_names_its_files_in_visiting_order(table_of: TableOf) -> None:
    table = table_of("v1/user/Get.py", "v1/User/Get.py", "v1/User/Post.py", "v1/user/GET.py")
    assert table.duplicates == (
        Duplicate("GET", "/v1/user", ("v1/User/Get.py", "v1/user/GET.py", "v1/user/Get.py")),
    )
    assert [route.file for route in table.routes] == ["v1/User/Post.py", "v1/user/Get.py"]


def test_two_socket_spellings_are_duplicates(table_of: TableOf) -> None:
    table = table_of("v1/Chat/Ws.py", "v1/Chat/Socket.py")
    assert table.duplicates == (
        Duplicate("WEBSOCKET", "/v1/chat", ("v1/Chat/Socket.py", "v1/Chat/Ws.py")),
    )


def test_differently_named_brackets_with_one_method_are_duplicates(table_of: TableOf) -> None:
    table = table_of("v1/[id]/Get.py", "v1/[name]/Get.py")
    assert table.duplicates == (
        Duplicate("GET", "/v1/{id}", ("v1/[id]/Get.py", "v1/[name]/Get.py")),
    )


def test_a_parameter_and_a_folder_in_braces_are_no_duplicates(table_of: TableOf) -> None:
    table = table_of("v1/{id}/Get.py", "v1/[id]/Get.py")
    assert table.duplicates == ()
    assert served(table, "GET", b"/v1/%7Bid%7D") == "v1/{id}/Get.py"
    assert served(table, "GET", b"/v1/7") == "v1/[id]/Get.py"


def test_rule_6_the_first_visited_name_holds_for_every_file(table_of: TableOf) -> None:
    table = table_of("v1/[name]/Put.py", "v1/[id]/Get.py")
    assert [(r.file, r.template, r.parameters) for r in table.routes] == [
        ("v1/[id]/Get.py", "/v1/{id}", ("id",)),
        ("v1/[name]/Put.py", "/v1/{id}", ("id",)),
    ]
    found = table.resolve("PUT", b"/v1/7")
    assert isinstance(found, Found)
    assert found.params == {"id": "7"}


def test_rule_6_a_name_may_be_set_by_a_file_further_down(table_of: TableOf) -> None:
    table = table_of("v1/[a]/Deep/Get.py", "v1/[b]/Get.py")
    assert [route.template for route in table.routes] == ["/v1/{a}/deep", "/v1/{a}"]


def test_rule_6_only_endpoints_set_a_name(table_of: TableOf) -> None:
    table = table_of("v1/[a]/Services/Get.py", "v1/[a]/names.py", "v1/[b]/Get.py")
    assert [route.template for route in table.routes] == ["/v1/{b}"]


def test_a_repeated_name_counts_once_for_each_folder(table_of: TableOf) -> None:
    (route,) = table_of("v1/[id]/Part/[id]/Get.py").routes
    assert route.parameters == ("id", "id")


@pytest.mark.parametrize(
    ("folders", "versions", "latest"),
    [
        ((), (), None),
        (("v2", "v10", "v1"), ("v1", "v2", "v10"), "v10"),
        (("v01", "v1"), ("v1", "v01"), "v1"),
        (("v002", "v02", "v1"), ("v1", "v02", "v002"), "v02"),
        (("V3", "v1"), ("v1",), "v1"),
        (("v0",), ("v0",), "v0"),
    ],
)
def test_versions_ascend_by_number(
    table_of: TableOf, folders: tuple[str, ...], versions: tuple[str, ...], latest: str | None
) -> None:
    table = table_of(*(f"{folder}/Get.py" for folder in folders))
    assert table.versions == versions
    assert table.latest == latest


def test_a_version_without_a_route_is_not_registered(table_of: TableOf) -> None:
    assert table_of("v1/Get.py", "v2/Services/Get.py", "v3/names.py").latest == "v1"


def test_s09_v01_and_v1_are_both_served(table_of: TableOf) -> None:
    table = table_of("v01/Get.py", "v1/Get.py")
    assert served(table, "GET", b"/v01") == "v01/Get.py"
    assert served(table, "GET", b"/v1") == "v1/Get.py"


def test_routes_are_compared_by_identity(table_of: TableOf) -> None:
    (one,), (other,) = table_of("v1/Get.py").routes, table_of("v1/Get.py").routes
    assert one != other
    assert {one: "plan"}[one] == "plan"


names = st.sampled_from(["User", "user", "[id]", "[name]", "Services", "a-b", "a", "v1", "v01"])
stems = st.sampled_from(["Get", "get", "GET", "Post", "Ws", "Socket", "names"])
trees = st.lists(
    st.tuples(st.lists(names, max_size=4), stems).map(lambda t: (*t[0], f"{t[1]}.py")), unique=True
)


@given(trees.flatmap(lambda tree: st.tuples(st.just(tree), st.permutations(tree))))
def test_s19_a_table_does_not_depend_on_the_order_of_the_disk(
    orders: tuple[list[tuple[str, ...]], list[tuple[str, ...]]],
) -> None:
    one, other = (RouteTable(Path("Api"), Listing(tuple(map(Entry, order)))) for order in orders)
    assert [(r.file, r.template) for r in one.routes] == [
        (r.file, r.template) for r in other.routes
    ]
    assert (one.skipped, one.duplicates) == (other.skipped, other.duplicates)


@given(trees)
def test_every_file_is_served_skipped_replaced_or_ordinary(tree: list[tuple[str, ...]]) -> None:
    table = RouteTable(Path("Api"), Listing(tuple(map(Entry, tree))))
    lost = {file for duplicate in table.duplicates for file in duplicate.files[:-1]}
    ordinary = {"/".join(parts) for parts in tree if parts[-1] == "names.py"}
    accounted = [r.file for r in table.routes] + [s.file for s in table.skipped]
    assert sorted([*accounted, *lost, *ordinary]) == sorted("/".join(parts) for parts in tree)


def test_a_route_takes_at_most_a_kilobyte(table_of: TableOf) -> None:
    files = [f"v1/Part{i}/{name}/Get.py" for i in range(500) for name in ("Leaf", "[id]")]
    table_of(*files)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        table = table_of(*files)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(table.routes) == 1000
    assert (after - before) / len(table.routes) <= 1024
