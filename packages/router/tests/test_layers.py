"""Versions that inherit: the table is that of a copy with the same changes."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from treefold_router import Found, MethodNotAllowed, NotFound, RouteTable, explanation_lines

Grow = Callable[..., Path]


def inherit(api: Path, **bases: str) -> None:
    for version, base in bases.items():
        (api / version).mkdir(exist_ok=True)
        (api / version / "version.toml").write_text(f'inherits = "{base}"\n')


def served(table: RouteTable, method: str, path: str) -> str:
    found = table.resolve(method, path)
    assert isinstance(found, Found), found
    return found.route.file


def allowed(table: RouteTable, path: str) -> str:
    answer = table.resolve("PATCH", path)
    assert isinstance(answer, MethodNotAllowed), answer
    return answer.allow


BASE = (
    "v1/User/Get.py",
    "v1/User/Post.py",
    "v1/User/[id]/Get.py",
    "v1/User/[id]/Delete.py",
    "v1/Legacy/Get.py",
    "v1/Legacy/Deep/Get.py",
    "v1/User/Services/names.py",
)


def test_what_a_version_lacks_is_served_from_its_base(api: Path, grow: Grow) -> None:
    grow(*BASE)
    inherit(api, v2="v1")
    table = RouteTable.scan(api)
    assert table.versions == ("v1", "v2")
    assert table.latest == "v2"
    found = table.resolve("GET", b"/v2/user/7")
    assert isinstance(found, Found)
    route = found.route
    assert (route.file, route.layer, route.version) == ("v1/User/[id]/Get.py", "v1", "v2")
    assert (route.template, route.effective_file) == ("/v2/user/{id}", "v2/User/[id]/Get.py")
    assert found.params == {"id": "7"}


def test_an_own_file_replaces_the_method_at_its_place(api: Path, grow: Grow) -> None:
    grow(*BASE, "v2/user/GET.py", "v2/User/[key]/delete.py")
    inherit(api, v2="v1")
    table = RouteTable.scan(api)
    assert served(table, "GET", "/v2/user") == "v2/user/GET.py"
    assert served(table, "GET", "/v1/user") == "v1/User/Get.py"
    assert served(table, "DELETE", "/v2/user/7") == "v2/User/[key]/delete.py"
    assert allowed(table, "/v2/user") == "GET, POST"
    assert table.duplicates == ()


def test_a_mark_removes_a_method_a_folder_and_a_bracket(api: Path, grow: Grow) -> None:
    grow(*BASE, "v2/User/[id]/Delete.gone", "v2/legacy.gone", "v3/User/[key].gone")
    inherit(api, v2="v1", v3="v2")
    table = RouteTable.scan(api)
    assert allowed(table, "/v2/user/7") == "GET"
    assert table.resolve("GET", "/v2/legacy") == NotFound(unversioned=False)
    assert table.resolve("GET", "/v2/legacy/deep") == NotFound(unversioned=False)
    assert served(table, "GET", "/v2/user/7") == "v1/User/[id]/Get.py"
    assert table.resolve("GET", "/v3/user/7") == NotFound(unversioned=False)
    assert served(table, "GET", "/v1/legacy/deep") == "v1/Legacy/Deep/Get.py"


def test_what_a_mark_removes_may_be_added_again_above(api: Path, grow: Grow) -> None:
    grow(*BASE, "v2/User/[id]/Delete.gone", "v3/User/[id]/Delete.py")
    inherit(api, v2="v1", v3="v2", v4="v3")
    table = RouteTable.scan(api)
    assert allowed(table, "/v2/user/7") == "GET"
    assert served(table, "DELETE", "/v3/user/7") == "v3/User/[id]/Delete.py"
    assert served(table, "DELETE", "/v4/user/7") == "v3/User/[id]/Delete.py"


def test_an_own_folder_beside_its_mark_starts_afresh(api: Path, grow: Grow) -> None:
    grow(*BASE, "v2/Legacy.gone", "v2/Legacy/Put.py")
    inherit(api, v2="v1")
    table = RouteTable.scan(api)
    assert allowed(table, "/v2/legacy") == "PUT"
    assert table.find_layer_findings() == ()


def test_a_base_may_have_the_higher_number(api: Path, grow: Grow) -> None:
    grow("v2/User/Get.py", "v2/User/Put.py", "v1/User/Get.py")
    inherit(api, v1="v2")
    table = RouteTable.scan(api)
    assert served(table, "GET", "/v1/user") == "v1/User/Get.py"
    assert served(table, "PUT", "/v1/user") == "v2/User/Put.py"


def test_an_own_static_folder_wins_over_an_inherited_parameter(api: Path, grow: Grow) -> None:
    grow(*BASE, "v2/User/Me/Put.py")
    inherit(api, v2="v1")
    table = RouteTable.scan(api)
    assert allowed(table, "/v2/user/me") == "PUT"
    assert served(table, "GET", "/v1/user/me") == "v1/User/[id]/Get.py"


def test_the_first_visited_file_of_the_whole_version_names_a_parameter(
    api: Path, grow: Grow
) -> None:
    grow("v1/User/[b]/Get.py", "v2/User/[a]/Put.py", "v3/User/[c]/Put.py")
    inherit(api, v2="v1", v3="v1")
    table = RouteTable.scan(api)
    templates = {route.version: route.template for route in table.routes}
    assert templates == {"v1": "/v1/user/{b}", "v2": "/v2/user/{a}", "v3": "/v3/user/{b}"}
    first, second = table.find_layer_findings()
    assert first.message == (
        "Version 'v2' names this parameter 'a' in another file, so the handler here receives 'a'"
        " instead of 'b'; use one name"
    )
    assert (first.code, first.files) == ("layer-brackets", ("v1/User/[b]/Get.py",))
    assert second.files == ("v3/User/[c]/Put.py",)


def test_a_version_that_is_only_a_base_is_not_served(api: Path, grow: Grow) -> None:
    grow(*BASE, "v1/V1/notes.py", "v10/Get.py")
    inherit(api, v2="v1")
    for version in ("v1", "v10"):
        (api / version / "version.toml").write_text("serve = false")
    table = RouteTable.scan(api)
    assert table.versions == ("v2",)
    assert table.latest == "v2"
    assert table.resolve("GET", "/v1/user") == NotFound(unversioned=False)
    assert table.resolve("GET", "/v10") == NotFound(unversioned=False)
    assert served(table, "GET", "/v2/user") == "v1/User/Get.py"
    assert "not served    serve = false in Api/v10/version.toml" in explained(table, "GET", "/v10")


def explained(table: RouteTable, method: str, path: str) -> list[str]:
    lines = explanation_lines(table.explain(method, path))
    return [f"{line.label:12}  {line.text}" for line in lines]


def test_a_duplicate_of_a_base_is_reported_once(api: Path, grow: Grow) -> None:
    grow("v1/User/Get.py", "v1/user/Get.py", "v2/Book/get.py", "v2/Book/Get.py")
    inherit(api, v2="v1")
    table = RouteTable.scan(api)
    assert [found.url for found in table.duplicates] == ["/v1/user", "/v2/book"]
    assert served(table, "GET", "/v2/user") == "v1/user/Get.py"
    (api / "v1" / "version.toml").write_text("serve = false")
    table = RouteTable.scan(api)
    assert [found.url for found in table.duplicates] == ["/v2/book", "/v2/user"]


def test_a_file_that_cannot_be_read_is_skipped_in_its_own_version_only(
    api: Path, grow: Grow
) -> None:
    grow(*BASE)
    inherit(api, v2="v1", v3="v2")
    (api / "v2" / "User").mkdir()
    os.mkfifo(api / "v2" / "User" / "Get.py")
    table = RouteTable.scan(api)
    assert [(one.file, one.reason) for one in table.skipped if "Services" not in one.file] == [
        ("v2/User/Get.py", "not a regular file")
    ]
    assert allowed(table, "/v2/user") == "POST"
    assert allowed(table, "/v3/user") == "POST"


def test_modules_and_packages_have_the_names_of_a_copy(api: Path, grow: Grow) -> None:
    grow(*BASE, "v1/User/__init__.py", "v1/User/prices.py", "v2/User/Services/names.py")
    grow("v2/User/prices.gone", "v3/User/__init__.gone")
    inherit(api, v2="v1", v3="v2")
    layers = RouteTable.scan(api).layers
    assert "v2/User/prices.py" not in layers.files
    assert layers.files["v3/User/Services/names.py"] == "v2/User/Services/names.py"
    assert layers.files["v2/User/__init__.py"] == "v1/User/__init__.py"
    assert layers.list_packages() == {"v2/User"}
    assert layers.folders["v3/User/Services"] == ("v2/User/Services",)
    assert layers.folders["v3/User"] == ("v2/User", "v1/User")
    assert layers.folders["v3/User/[id]"] == ("v1/User/[id]",)
    assert layers.chains["v3"] == ("v3", "v2", "v1")
    assert layers.list_heirs("v1") == ("v2", "v3")


def test_a_mark_of_a_services_folder_is_compared_as_it_is(api: Path, grow: Grow) -> None:
    grow("v1/Services/a.py", "v1/services/Get.py", "v2/Services.gone", "v3/services.gone")
    inherit(api, v2="v1", v3="v1")
    table = RouteTable.scan(api)
    assert served(table, "GET", "/v2/services") == "v1/services/Get.py"
    assert "v2/Services/a.py" not in table.layers.files
    assert table.layers.files["v3/Services/a.py"] == "v1/Services/a.py"
    assert isinstance(table.resolve("GET", "/v3/services"), NotFound)


@pytest.mark.parametrize(
    ("files", "code", "message"),
    [
        (
            ["v2/User/Put.gone"],
            "gone-nothing",
            "Version 'v2' inherits no 'Put' here, so this removes nothing; remove it",
        ),
        (
            ["v1/Old.gone"],
            "gone-nothing",
            "Version 'v1' inherits from no version, so this removes nothing; remove it, or write"
            " 'inherits' in Api/v1/version.toml",
        ),
        (
            ["v2/User/Get.gone", "v2/User/get.py"],
            "gone-beside",
            "Api/v2/User/get.py stands beside it and serves, so 'Get' is not gone; remove one",
        ),
        (
            ["v2/user/Put.py"],
            "layer-case",
            "Folder differs from Api/v1/User, which 'v2' inherits, only in case: their routes are"
            " one place, their modules are not; use one spelling",
        ),
    ],
)
def test_marks_and_names_that_mean_something_else_are_findings(
    api: Path, grow: Grow, files: list[str], code: str, message: str
) -> None:
    grow(*BASE, *files)
    inherit(api, v2="v1")
    (finding,) = RouteTable.scan(api).find_layer_findings()
    assert (finding.code, finding.message) == (code, message)
    assert files[0].startswith(finding.files[0])


def test_a_removed_route_is_explained_by_its_mark(api: Path, grow: Grow) -> None:
    grow(*BASE, "v2/User/[id]/Delete.gone")
    inherit(api, v2="v1", v3="v2")
    table = RouteTable.scan(api)
    for version in ("v2", "v3"):
        lines = explained(table, "DELETE", f"/{version}/user/7")
        assert "answer        405: the path exists, but for GET only" in lines
        assert (
            "gone          Api/v1/User/[id]/Delete.py is hidden by Api/v2/User/[id]/Delete.gone"
        ) in lines
        assert "to add it     remove the file Api/v2/User/[id]/Delete.gone" in lines
    assert "answer        200, served by Api/v1/User/Get.py (inherited by v3)" in explained(
        table, "GET", "/v3/user"
    )


def test_a_rescan_sees_marks_and_settings_and_keeps_routes(api: Path, grow: Grow) -> None:
    grow(*BASE)
    inherit(api, v2="v1")
    table = RouteTable.scan(api, keep_listing=True)
    former = {route.template: route for route in table.routes if route.method == "GET"}
    grow("v2/User/[id]/Delete.gone")
    table = table.rescan(["v2/User/[id]/Delete.gone"])
    assert allowed(table, "/v2/user/7") == "GET"
    for route in table.routes:
        assert route.method != "GET" or route is former[route.template]
    (api / "v2" / "User" / "[id]" / "Delete.gone").unlink()
    table = table.rescan(["v2/User/[id]/Delete.gone"])
    assert allowed(table, "/v2/user/7") == "DELETE, GET"
    (api / "v2" / "version.toml").write_text("")
    assert table.rescan(["v2/version.toml"]).versions == ("v1",)
    (api / "v2" / "version.toml").unlink()
    assert table.rescan(["v2/version.toml"]).versions == ("v1",)
    grow("v2/User/Get.py")
    inherit(api, v2="v1")
    table = table.rescan(["v2/version.toml", "v2/User/Get.py"])
    found = table.resolve("GET", "/v2/user")
    assert isinstance(found, Found)
    assert found.route is not former["/v2/user"]
    assert found.route.file == "v2/User/Get.py"


def test_marks_outside_of_versions_and_without_a_name_are_ordinary_files(
    api: Path, grow: Grow
) -> None:
    grow(*BASE, "User.gone", "tools/Get.gone", "v2/.gone", "v2/User/x.gone/Get.py")
    inherit(api, v2="v1")
    table = RouteTable.scan(api)
    assert served(table, "GET", "/v2/user/x.gone") == "v2/User/x.gone/Get.py"
    assert served(table, "GET", "/v2/user") == "v1/User/Get.py"
    assert table.find_layer_findings() == ()
