"""The target of the line (S-76 to S-81)."""

from urllib.parse import quote

import pytest
from hypothesis import given, strategies as st

from treefold_logging import request_target
from treefold_logging._escape import CUT, PAYLOAD_LIMIT


@pytest.mark.parametrize(
    ("raw_path", "query", "target"),
    [
        (b"/v1/user/42", b"", "/v1/user/42"),
        (b"/", b"", "/"),
        (b"", b"", "/"),
        (b"*", b"", "*"),
        (b"//a//b/", b"", "//a//b/"),
        (b"/v1/a%2Fb%252F", b"", "/v1/a%2Fb%252F"),
        (b"/v1/user", b"page=2&q=a+b", "/v1/user?page=2&q=a+b"),
        (b"/v1/user", b"flag&&x=&=y", "/v1/user?flag&&x=&=y"),
    ],
)
def test_path_and_query_are_shown_as_sent(raw_path: bytes, query: bytes, target: str) -> None:
    assert request_target(raw_path, query) == target


@pytest.mark.parametrize(
    ("raw_path", "target"),
    [
        (b"/v1/x%0a[INFO] GET /v1/fake 200", "/v1/x%0a[INFO]%20GET%20/v1/fake%20200"),
        (b"/\x1b[2J", "/%1B[2J"),
        (b"/a\r\nb\x00", "/a%0D%0Ab%00"),
        (b"/\xc2\x85\xe2\x80\xae\x7f", "/%C2%85%E2%80%AE%7F"),
        (b"/%1b[2J%e2%80%ae", "/%1b[2J%e2%80%ae"),
    ],
)
def test_s77_what_could_break_the_line_is_percent_encoded(raw_path: bytes, target: str) -> None:
    assert request_target(raw_path, b"") == target
    assert request_target(b"/", raw_path) == f"/?{target}"


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        (b"token=a&Password=b&api%5Fkey=c&x=1", "token=***&Password=***&api%5Fkey=***&x=1"),
        (b"refresh+token=a", "refresh+token=***"),
        (b"token=", "token=***"),
        (b"token=a=b=c", "token=***"),
        (b"x=1;token=a;y=2", "x=1;token=***;y=2"),
        (b"user[password]=a&user%5Bpin%5D=b", "user[password]=***&user%5Bpin%5D=***"),
        (b"%70%61%73%73word=a", "%70%61%73%73word=***"),
        (b"\xef\xbd\x90assword=a", "%EF%BD%90assword=***"),
        (b"api%255Fkey=a", "api%255Fkey=a"),
        (b"next=%2Fx%3Ftoken%3Da%26b%3D1", "next=***"),
        (b"url=postgres%3A%2F%2Fu:a@h", "url=***"),
        (b"eyJhbGci.eyJzdWIi.c2ln", "***"),
        (b"auth_code=Bearer+abc", "auth_code=***"),
    ],
)
def test_s80_secrets_in_the_query_are_masked_by_the_key_decoded_once(
    query: bytes, shown: str
) -> None:
    assert request_target(b"/v1/x", query) == f"/v1/x?{shown}"


@pytest.mark.parametrize(
    ("raw_path", "masked", "target"),
    [
        (b"/v1/reset/abc123", (2,), "/v1/reset/***"),
        (b"//v1///reset/a%20b/", (2,), "//v1///reset/***/"),
        (b"/v1/a/b/c", (1, 3), "/v1/***/b/***"),
        (b"/v1/a", (5, -1), "/v1/a"),
        (b"/v1/reset/\xff \n", (2,), "/v1/reset/***"),
    ],
)
def test_s81_segments_of_sensitive_parameters_are_masked(
    raw_path: bytes, masked: tuple[int, ...], target: str
) -> None:
    assert request_target(raw_path, b"", masked_segments=masked) == target


def test_a_token_of_the_jwt_shape_is_masked_in_the_path() -> None:
    assert request_target(b"/verify/eyJhbGci.eyJzdWIi.c2ln/x", b"") == "/verify/***/x"


@pytest.mark.parametrize(
    "segment",
    [
        *(b"eyJhbGci%2EeyJzdWIi%2Ec2ln", b"eyJhbGci%2eeyJzdWIi.c2ln"),
        *(b"eyJhbGci%252EeyJzdWIi%252Ec2ln", b"%65yJhbGci.%65yJzdWIi.c2ln"),
        *(b"a%2FeyJhbGci.eyJzdWIi.c2ln", b"http%3A%2F%2Fuser%3As3cret%40example.org"),
    ],
)
def test_an_encoded_token_of_the_jwt_shape_is_masked_in_the_path(segment: bytes) -> None:
    assert request_target(b"/verify/" + segment + b"/x", b"") == "/verify/***/x"


def test_the_userinfo_of_an_absolute_target_is_masked() -> None:
    shown = request_target(b"http://user:s3cret@example.org/v1/x", b"")
    assert shown == "http://user:***@example.org/v1/x"


def test_the_userinfo_of_an_address_in_the_path_is_masked() -> None:
    shown = request_target(b"/fetch/http://user:s3cret@example.org/x", b"")
    assert shown == "/fetch/http://user:***@example.org/x"


@pytest.mark.parametrize(
    "path", ["/course/Basic%20Python", "/a%2Fb%20c", "/%63af%C3%A9", "/100%", "/%25%2520", "/12:30"]
)
def test_an_encoded_path_without_a_secret_is_shown_as_sent(path: str) -> None:
    assert request_target(path.encode(), b"") == path


@pytest.mark.parametrize("times", [1, 2, 3])
def test_an_address_with_a_secret_is_masked_however_often_it_is_encoded(times: int) -> None:
    address = "https://example.org/?token=s3cret"
    for _ in range(times):
        address = quote(address, safe="")
    assert request_target(b"/x", f"next={address}".encode()) == "/x?next=***"


def test_a_long_target_is_cut_after_masking() -> None:
    secret = b"s3cr3t" * 400
    target = request_target(b"/x", b"a=" + b"y" * (PAYLOAD_LIMIT - 20) + b"&token=" + secret)
    assert len(target) <= PAYLOAD_LIMIT
    assert "s3cr3t" not in target
    assert request_target(b"/" + b"a" * 9000, b"").endswith(CUT)


@given(st.binary(), st.binary(), st.lists(st.integers(-2, 5)))
def test_a_target_is_one_word_of_printable_ascii(
    raw_path: bytes, query: bytes, masked: list[int]
) -> None:
    target = request_target(raw_path, query, masked_segments=masked)
    assert target
    assert all("!" <= char <= "~" for char in target)
    assert len(target) <= PAYLOAD_LIMIT


@given(st.binary(min_size=1).filter(lambda value: not {*value} & {*b"&;"}))
def test_the_value_of_a_sensitive_key_never_shows(value: bytes) -> None:
    assert request_target(b"/x", b"a=1&token=" + value + b"&b=2") == "/x?a=1&token=***&b=2"


def test_s80_names_of_credentials_are_masked_as_whole_names_of_a_query() -> None:
    query = b"code=a1&state=b2&sig=c3&key=d4&Co%64e=e5&zipcode=1020&keyword=oak&x[key]=6"
    shown = "code=***&state=***&sig=***&key=***&Co%64e=***&zipcode=1020&keyword=oak&x[key]=6"
    assert request_target(b"/v1/callback", query) == f"/v1/callback?{shown}"


def test_s80_words_of_other_languages_are_masked() -> None:
    target = request_target(b"/v1", "passwort=a&contrase%C3%B1a=b&contraseña=c".encode())
    assert target == "/v1?passwort=***&contrase%C3%B1a=***&contrase%C3%B1a=***"
