"""`[vN/]<path>` is parsed: names, versions, and everything that is refused (S-124)."""

import re

import pytest
from hypothesis import given, strategies as st

from treefold_scaffold import ScaffoldError
from treefold_scaffold._path import HandlerPath, parse_path


@pytest.mark.parametrize(
    ("path", "version", "folders"),
    [
        ("user", None, ("User",)),
        ("User", None, ("User",)),
        ("user/role", None, ("User", "Role")),
        ("v1/user", "v1", ("User",)),
        ("v10/user/role", "v10", ("User", "Role")),
        ("v1", "v1", ()),
        ("order-line", None, ("OrderLine",)),
        ("snake_case", None, ("SnakeCase",)),
        ("OrderLine", None, ("OrderLine",)),
        ("orderLine", None, ("OrderLine",)),
        ("API", None, ("API",)),
        ("a--b_c", None, ("ABC",)),
        ("2fa", None, ("2fa",)),
        ("user/", None, ("User",)),
        ("/user", None, ("User",)),
        ("/v1/user/", "v1", ("User",)),
        ("user/[id]", None, ("User", "[id]")),
        ("user/[userId]/role", None, ("User", "[userId]", "Role")),
        ("user/[user-id]", None, ("User", "[user-id]")),
        ("user/[größe]", None, ("User", "[größe]")),
        ("[id]", None, ("[id]",)),
        ("user/v2", None, ("User", "V2")),
        ("vault", None, ("Vault",)),
        ("user/[Services]", None, ("User", "[Services]")),
        ("servicesdesk", None, ("Servicesdesk",)),
    ],
)
def test_segments_become_folder_names(path: str, version: str | None, folders: tuple[str, ...]):
    parsed = parse_path(path)
    assert (parsed.version, parsed.folders) == (version, folders)


def test_segments_whose_separator_is_lost_are_kept_as_typed():
    path = parse_path("v1/Order-Line/[user-id]/snake_case/order-line/User")
    assert path.separated == ("order-line", "snake_case")
    assert parse_path("v1/user/[user-id]") == HandlerPath("v1", ("User", "[user-id]"))


SHAPE = "must be letters, digits, '-' and '_', or a whole '[name]'"


@pytest.mark.parametrize(
    "segment",
    [
        *(".", "..", "...", "a.b", ".git", "~", "$HOME", "a b", " ", "-", "_", "--"),
        *("[b", "b]", "[]", "[[b]]", "a[b]", "[b]c", "[a][b]", "[a b]", "[a.b]", "[..]", "{id}"),
        *(
            "a\\b",
            "C:",
            "a\x00",
            "a\n",
            "a\x1b[31m",
            "a;b",
            "%2e%2e",
            "<id>",
            "ﬁ",
            "größe",
            "\uff0e\uff0e",
        ),
        *("a" * 201, f"[{'a' * 61}]", "\udcff"),
    ],
)
@pytest.mark.parametrize("prefix", ["", "v1/", "user/"])
def test_a_segment_that_is_no_plain_name_is_refused(prefix: str, segment: str):
    with pytest.raises(ScaffoldError) as refused:
        parse_path(prefix + segment + "/x")
    path = f"{prefix}{segment}/x"
    assert str(refused.value) == f"Path {path!r} is refused: segment {segment!r} {SHAPE}"


@pytest.mark.parametrize("path", ["", "/", "//", "//user", "user//role", "user//", "//etc/passwd"])
def test_an_empty_segment_is_refused(path: str):
    with pytest.raises(ScaffoldError) as refused:
        parse_path(path)
    assert str(refused.value) == (
        f"Path {path!r} is refused: a segment is empty; write it like 'v1/user/[id]'"
    )


@pytest.mark.parametrize("path", ["user/[id]/role/[id]", "v1/[id]/[id]"])
def test_a_parameter_that_is_repeated_is_refused(path: str):
    with pytest.raises(ScaffoldError) as refused:
        parse_path(path)
    assert str(refused.value) == (
        f"Path {path!r} is refused: parameter '[id]' is repeated; give each parameter a name of its"
        " own"
    )


@pytest.mark.parametrize("name", ["Services", "services", "SERVICES", "-services", "__pycache__"])
@pytest.mark.parametrize("template", ["{}", "v1/{}/x", "user/{}"])
def test_a_folder_that_never_holds_routes_is_refused(template: str, name: str):
    with pytest.raises(ScaffoldError) as refused:
        parse_path(template.format(name))
    assert str(refused.value).endswith(
        f"segment {name!r} names a folder that never holds routes; choose another name"
    )


@pytest.mark.parametrize("version", ["V1", "v1-beta", "V2_x"])
def test_a_first_segment_that_looks_like_a_version_is_refused(version: str):
    with pytest.raises(ScaffoldError) as refused:
        parse_path(f"{version}/user")
    assert str(refused.value).endswith(
        f"segment {version!r} is not a version; write 'v' and digits, such as 'v1'"
    )


def accepted(path: str) -> tuple[HandlerPath, ...]:
    try:
        return (parse_path(path),)
    except ScaffoldError:
        return ()


@given(st.text(alphabet=st.sampled_from("aB1-_/[].\\ \n\u00e9v\0"), max_size=20))
def test_what_is_accepted_is_a_plain_relative_path(path: str):
    for wanted in accepted(path):
        assert re.fullmatch("v[0-9]+", wanted.version or "v0")
        for folder in wanted.folders:
            assert re.fullmatch(r"[A-Z0-9][A-Za-z0-9]*|\[[\w-]+\]", folder)
