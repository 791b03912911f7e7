"""`version.toml`: the keys it may have, and messages for every other content."""

import os
from datetime import date
from pathlib import Path

import pytest

from treefold_router import RouterError, RouteTable, is_web_address


def scan(api: Path, text: str | bytes, *, version: str = "v2") -> RouteTable:
    for name in ("v1", version):
        (api / name).mkdir(exist_ok=True)
    (api / "v1" / "Get.py").touch()
    content = text.encode() if isinstance(text, str) else text
    (api / version / "version.toml").write_bytes(content)
    return RouteTable.scan(api)


def read_error(api: Path, text: str | bytes, *, version: str = "v2") -> str:
    with pytest.raises(RouterError) as caught:
        scan(api, text, version=version)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_version_file_holds_every_key(api: Path) -> None:
    table = scan(
        api,
        """
        inherits = "v1"
        serve = true
        status = "draft"
        deprecated = 2026-11-01
        sunset = 2027-06-30
        link = "https://example.org/v3"
        successor = "v3"
        """,
    )
    settings = table.layers.settings["v2"]
    assert settings.inherits == "v1"
    assert settings.serve
    assert settings.status == "draft"
    assert settings.deprecated == date(2026, 11, 1)
    assert settings.sunset == date(2027, 6, 30)
    assert settings.link == "https://example.org/v3"
    assert settings.successor == "v3"


def test_an_empty_version_file_inherits_nothing(api: Path) -> None:
    table = scan(api, "")
    assert table.versions == ("v1",)
    assert table.layers.settings["v2"].inherits == ""


def test_an_unknown_key_names_the_nearest_one(api: Path) -> None:
    assert read_error(api, 'inherit = "v1"') == (
        "Unknown key 'inherit' in Api/v2/version.toml; write 'inherits'"
    )
    assert read_error(api, "deprecate = true") == (
        "Unknown key 'deprecate' in Api/v2/version.toml; write 'deprecated'"
    )
    assert read_error(api, "xyz = 1") == (
        "Unknown key 'xyz' in Api/v2/version.toml; use inherits, serve, status, deprecated, sunset,"
        " link, successor"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('inherits = "1"', "'inherits' in Api/v2/version.toml must be the name of a version"),
        ('inherits = ["v1"]', "got ['v1']"),
        ('serve = "no"', "'serve' in Api/v2/version.toml must be true or false, got 'no'"),
        ("serve = 0", "'serve' in Api/v2/version.toml must be true or false, got 0"),
        ('status = "old"', "must be 'draft' or 'stable', got 'old'"),
        ("status = [1]", "must be 'draft' or 'stable', got [1]"),
        ("deprecated = false", "must be a date such as 2027-06-30, without quotes, or true"),
        ('deprecated = "2026-11-01"', "without quotes, or true, got '2026-11-01'"),
        ("sunset = 2027-06-30T00:00:00Z", "'sunset' in Api/v2/version.toml must be a date"),
        ("sunset = true", "must be a date such as 2027-06-30, without quotes, got True"),
        ('link = "example"', "'link' in Api/v2/version.toml must be a URL"),
        ('link = "https://a\\nb"', "'link' in Api/v2/version.toml must be a URL"),
        ('link = "https://a>; rel=x"', "'link' in Api/v2/version.toml must be a URL"),
        ('successor = "latest"', "'successor' in Api/v2/version.toml must be the name"),
        (
            "deprecated = 2027-01-01\nsunset = 2026-12-31",
            "'sunset' in Api/v2/version.toml must not be earlier than 'deprecated'",
        ),
        ("inherits = v1", "Api/v2/version.toml is not valid TOML: "),
        ("a = " + "[" * 5000, "Api/v2/version.toml is not valid TOML: "),
        (b"\xff\xfe", "Api/v2/version.toml is not valid UTF-8; save it as UTF-8"),
    ],
)
def test_a_wrong_content_is_an_error_with_the_file(
    api: Path, text: str | bytes, message: str
) -> None:
    assert message in read_error(api, text)


def test_a_byte_order_mark_is_no_error(api: Path) -> None:
    assert scan(api, b'\xef\xbb\xbfinherits = "v1"').versions == ("v1", "v2")


def test_a_missing_base_is_an_error_that_names_the_versions(api: Path) -> None:
    assert read_error(api, 'inherits = "v9"') == (
        "'inherits' in Api/v2/version.toml must name a version folder, got 'v9'; there is 'v1'"
    )


def test_a_circle_is_an_error_that_shows_it(api: Path) -> None:
    scan(api, 'inherits = "v1"', version="v3")
    scan(api, 'inherits = "v3"', version="v2")
    assert read_error(api, 'inherits = "v2"', version="v1") == (
        "Versions inherit from each other: v1 -> v2 -> v3 -> v1; remove 'inherits' from one"
        " version.toml"
    )


def test_a_version_that_inherits_from_itself_is_a_circle(api: Path) -> None:
    assert "v2 -> v2" in read_error(api, 'inherits = "v2"')


def test_a_fifo_is_no_version_file(api: Path) -> None:
    (api / "v1").mkdir()
    os.mkfifo(api / "v1" / "version.toml")
    with pytest.raises(RouterError, match=r"Api/v1/version\.toml cannot be used: not a regular"):
        RouteTable.scan(api)


def test_the_name_elsewhere_is_a_file_like_others(api: Path) -> None:
    for folder in (api, api / "v1" / "User", api / "tools"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "version.toml").write_text("no TOML")
    assert RouteTable.scan(api).layers.settings == {}


def test_a_folder_of_the_name_is_a_segment(api: Path) -> None:
    (api / "v1" / "version.toml").mkdir(parents=True)
    (api / "v1" / "version.toml" / "Get.py").touch()
    assert [route.template for route in RouteTable.scan(api).routes] == ["/v1/version.toml"]


@pytest.mark.parametrize("successor", ["v2", "v9"])
def test_a_successor_that_serves_nothing_is_a_finding(api: Path, successor: str) -> None:
    table = scan(api, f'inherits = "v1"\ndeprecated = true\nsuccessor = "{successor}"')
    (finding,) = table.find_layer_findings()
    assert (finding.code, finding.files) == ("no-successor", ("v2/version.toml",))
    assert finding.message == (
        "'successor' must name another version that serves routes, got"
        f" {successor!r}; no answer links to it"
    )


def test_a_successor_that_serves_routes_is_no_finding(api: Path) -> None:
    table = scan(api, 'inherits = "v1"\nsuccessor = "v1"')
    assert table.find_layer_findings() == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("https://example.org/v2", True), ("/v2", True), ("v2", False), ("/a b", False), (7, False)],
)
def test_a_web_address_is_safe_in_a_header_field(text: object, expected: bool) -> None:
    assert is_web_address(text) is expected
