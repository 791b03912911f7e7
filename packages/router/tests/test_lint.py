"""What `check --strict` says, code by code."""

from collections.abc import Callable
from pathlib import Path

import pytest

from treefold_router import Finding, Found, RouteTable

TableOf = Callable[..., RouteTable]


def test_a_clean_tree_has_no_finding(table_of: TableOf) -> None:
    table = table_of("v1/Get.py", "v1/User/[id]/Get.py", "v1/User/[id]/Put.py", "v2/[id]/Get.py")
    assert table.lint() == ()


def test_rule_6_differing_brackets_at_one_position(table_of: TableOf) -> None:
    table = table_of("v1/User/[id]/Get.py", "v1/user/[name]/Put.py", "v1/User/[id]/x/Get.py")
    assert table.lint() == (
        Finding(
            "bracket-names",
            "One position is named 'id' and 'name', every handler there receives 'id'; "
            "use one name",
            ("v1/User/[id]/Get.py", "v1/User/[id]/x/Get.py", "v1/user/[name]/Put.py"),
        ),
    )


def test_rule_6_differing_brackets_count_where_the_first_file_lost(table_of: TableOf) -> None:
    (finding,) = table_of("v1/[id]/Get.py", "v1/[name]/Get.py").lint()
    assert finding.files == ("v1/[id]/Get.py", "v1/[name]/Get.py")


def test_brackets_at_different_positions_may_differ(table_of: TableOf) -> None:
    assert table_of("v1/A/[a]/Get.py", "v1/B/[b]/Get.py", "v1/A/[a]/[b]/Get.py").lint() == ()


def test_a_repeated_parameter(table_of: TableOf) -> None:
    table = table_of("v1/[id]/Part/[id]/Get.py", "v1/[id]/Part/[id]/Put.py")
    assert table.lint() == (
        Finding(
            "repeated-parameter",
            "Path '/v1/{id}/part/{id}' has the parameter 'id' more than once, only the deepest "
            "value reaches the handler; rename the others",
            ("v1/[id]/Part/[id]/Get.py", "v1/[id]/Part/[id]/Put.py"),
        ),
    )


@pytest.mark.parametrize("name", ["user-id", "1st", "class", "None", "a b", "\ufb01"])
def test_rule_4_a_parameter_that_is_no_identifier(table_of: TableOf, name: str) -> None:
    file = f"v1/[{name}]/Get.py"
    assert table_of(file).lint() == (
        Finding(
            "parameter-identifier",
            f"Parameter {name!r} is no identifier, it can only be read as "
            f"request.path_params[{name!r}]",
            (file,),
        ),
    )


@pytest.mark.parametrize("name", ["request", "websocket", "background"])
def test_s18_a_parameter_that_injection_keeps(table_of: TableOf, name: str) -> None:
    file = f"v1/[{name}]/Get.py"
    assert table_of(file).lint() == (
        Finding(
            "reserved-parameter",
            f"Parameter {name!r} is a name injection keeps for itself, it can only be read as "
            f"request.path_params[{name!r}]; rename the folder",
            (file,),
        ),
    )


def test_a_parameter_is_reported_once_for_all_its_files(table_of: TableOf) -> None:
    (finding,) = table_of("v1/A/[x-y]/Get.py", "v1/B/[x-y]/Get.py").lint()
    assert finding.files == ("v1/A/[x-y]/Get.py", "v1/B/[x-y]/Get.py")


@pytest.mark.parametrize(
    ("files", "clash", "names"),
    [
        (("v1/User/Get.py", "v1/user/Put.py"), ("v1/User", "v1/user"), "'User', 'user'"),
        (("v1/Get.py", "v1/get.py"), ("v1/Get.py", "v1/get.py"), "'Get.py', 'get.py'"),
        (("V1/names.py", "v1/names.py"), ("V1", "v1"), "'V1', 'v1'"),
    ],
)
def test_names_that_clash_on_a_case_insensitive_disk(
    grow: Callable[..., Path], files: tuple[str, ...], clash: tuple[str, ...], names: str
) -> None:
    assert RouteTable.scan(grow(*files)).lint() == (
        Finding(
            "case-clash",
            f"Names {names} are one name on a case-insensitive disk; rename all but one",
            clash,
        ),
    )


def test_files_that_are_no_code_do_not_clash(grow: Callable[..., Path]) -> None:
    api = grow("v1/Get.py", "v1/readme.md", "v1/README.md")
    assert RouteTable.scan(api).lint() == ()


def test_s09_two_spellings_of_one_version(table_of: TableOf) -> None:
    assert table_of("v01/Get.py", "v1/Get.py", "v2/Get.py").lint() == (
        Finding(
            "version-spelling",
            "Versions 'v01', 'v1' have one number and are served as different versions; "
            "keep one spelling",
            ("v01/Get.py", "v1/Get.py"),
        ),
    )


@pytest.mark.parametrize(
    ("stem", "meant"),
    [
        ("Putt", "Put"),
        ("Pots", "Post"),
        ("Gte", "Get"),
        ("Delet", "Delete"),
        ("DELTE", "Delete"),
        ("Pacth", "Patch"),
        ("Optoins", "Options"),
        ("Heead", "Head"),
        ("pst", "Post"),
        ("Scoket", "Socket"),
        ("Websoket", "Websocket"),
    ],
)
def test_a_file_near_a_method_is_told_the_spelling(
    table_of: TableOf, stem: str, meant: str
) -> None:
    table = table_of("v1/User/Get.py", f"v1/User/{stem}.py")
    assert [route.file for route in table.routes] == ["v1/User/Get.py"]
    assert table.skipped == ()
    assert table.lint() == (
        Finding(
            "method-name",
            f"File '{stem}.py' is no method, so it serves no route; name it '{meant}.py'",
            (f"v1/User/{stem}.py",),
        ),
    )


@pytest.mark.parametrize(
    "file",
    [
        "v1/User/path.py",
        "v1/User/posts.py",
        "v1/User/Set.py",
        "v1/User/ws2.py",
        "v1/User/as.py",
        "v1/User/et.py",
        "v1/User/getter.py",
        "v1/User/Pätch.py",
        "v1/User/__init__.py",
        "v1/User/Services/Putt.py",
        "v2.1/User/Putt.py",
        "Putt.py",
    ],
)
def test_ordinary_names_are_no_finding(table_of: TableOf, file: str) -> None:
    assert table_of("v1/User/Get.py", file).lint() == ()


@pytest.mark.parametrize(
    ("folder", "meant"),
    [
        ("{id}", "id"),
        ("{id:int}", "id"),
        ("{Path:path}", "Path"),
        ("<id>", "id"),
        ("<int:id>", "id"),
        (":id", "id"),
        ("[[id]]", "id"),
        ("[[...slug]]", "slug"),
        ("[id", "id"),
        ("id]", "id"),
    ],
)
def test_a_parameter_of_another_framework_is_told_its_spelling(
    table_of: TableOf, folder: str, meant: str
) -> None:
    table = table_of(f"v1/User/{folder}/Get.py", f"v1/User/{folder}/X/Put.py")
    assert table.lint() == (
        Finding(
            "parameter-spelling",
            f"Folder {folder!r} is the plain segment {folder.lower()!r}, no parameter; name it "
            f"'[{meant}]'",
            (f"v1/User/{folder}/Get.py", f"v1/User/{folder}/X/Put.py"),
        ),
    )
    served = table.resolve("GET", f"/v1/user/{folder.lower()}")
    assert isinstance(served, Found)


@pytest.mark.parametrize("name", ["...path", "*path", "path?", "path:int", ":path", " path "])
def test_a_decorated_bracket_name_is_told_the_plain_one(table_of: TableOf, name: str) -> None:
    (finding,) = table_of(f"v1/[{name}]/Get.py").lint()
    assert finding.code == "parameter-identifier"
    assert finding.message.endswith("; a parameter is one segment, name the folder '[path]'")


@pytest.mark.parametrize("folder", ["{}", "a{id}", "a:b", "(group)", "<>", ":1", "a-b", "@me", "x"])
def test_other_plain_folders_are_no_finding(table_of: TableOf, folder: str) -> None:
    assert table_of(f"v1/{folder}/Get.py").lint() == ()
