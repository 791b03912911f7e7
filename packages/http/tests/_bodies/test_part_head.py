"""What a part says of itself: S-37, S-38, S-40 and RFC 7578, 4."""

import pytest

from treefold_http._bodies.part_head import parse_head
from treefold_http._wire.asgi import RawHeaders
from treefold_http._wire.errors import BadRequest

NAMED = (b"content-disposition", b'form-data; name="a"')
FILE = (b"content-disposition", b'form-data; name="a"; filename="b.txt"')


@pytest.mark.parametrize(
    ("disposition", "name", "filename"),
    [
        (b'form-data; name="a"', "a", None),
        (b"FORM-DATA; Name=a", "a", None),
        (b'form-data; name="a"; filename=""', "a", ""),
        (b'form-data; name="a"; filename="a\\"b.txt"', "a", 'a"b.txt'),
        (b'form-data; name="a"; filename="C:\\x\\y.txt"', "a", "C:\\x\\y.txt"),
        (b'form-data; name="a"; filename="a%22b.txt"', "a", "a%22b.txt"),
        ('form-data; name="é"; filename="☃.png"'.encode(), "é", "☃.png"),
        (b"form-data; name=\"a\"; filename*=UTF-8''x.txt", "a", None),
        (b'form-data; name="a"; filename="y"; filename*=UTF-8\'\'x.txt', "a", "y"),
    ],
)
def test_name_and_file_name_are_taken_as_sent(
    disposition: bytes, name: str, filename: str | None
) -> None:
    head = parse_head([(b"content-disposition", disposition)])
    assert (head.name, head.filename) == (name, filename)


def test_other_header_fields_are_kept_and_not_obeyed() -> None:
    head = parse_head(
        [
            FILE,
            (b"content-type", b"image/png; charset=koi8-r"),
            (b"content-transfer-encoding", b"base64"),
            (b"content-length", b"12"),
        ]
    )
    assert head.content_type == "image/png; charset=koi8-r"
    assert head.headers["Content-Transfer-Encoding"] == "base64"
    assert len(head.headers) == 4


@pytest.mark.parametrize("charset", ["utf-8", "UTF-8", "utf8", "us-ascii"])
def test_a_field_may_say_that_it_is_utf_8(charset: str) -> None:
    head = parse_head([NAMED, (b"content-type", f"text/plain; charset={charset}".encode())])
    assert head.filename is None


def test_a_part_without_a_type_has_an_empty_one() -> None:
    assert parse_head([NAMED]).content_type == ""


_NO_NAME = 'A part has no name; send Content-Disposition: form-data; name="..."'


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ([], _NO_NAME),
        ([(b"content-type", b"text/plain")], _NO_NAME),
        ([(b"content-disposition", b"form-data")], _NO_NAME),
        ([(b"content-disposition", b'form-data; filename="x"')], _NO_NAME),
        ([(b"content-disposition", b'attachment; name="a"')], _NO_NAME),
        ([NAMED, NAMED], "A part has more than one Content-Disposition field"),
        (
            [FILE, (b"content-type", b"a/b"), (b"content-type", b"c/d")],
            "A part has more than one Content-Type field",
        ),
        (
            [(b"content-disposition", b'form-data; name="a"; name="b"')],
            "The Content-Disposition of a part repeats the parameter 'name'",
        ),
        (
            [(b"content-disposition", b'form-data; name="a')],
            "The Content-Disposition of a part has a quoted value without an end",
        ),
        (
            [(b"content-disposition", b'form-data; name="\xff"')],
            "The header of a part is not UTF-8 text",
        ),
        (
            [(b"content-disposition", b'form-data; name="a"; filename="a\x00.png"')],
            "The header of a part must not contain a control character",
        ),
        (
            [NAMED, (b"x-note", b"one\ntwo")],
            "The header of a part must not contain a control character",
        ),
        (
            [NAMED, (b"content-length", b"-1")],
            "The Content-Length of a part must be a decimal number",
        ),
        (
            [NAMED, (b"content-length", "²".encode())],
            "The Content-Length of a part must be a decimal number",
        ),
        (
            [NAMED, (b"content-type", b"text/plain; charset=latin-1")],
            "Field 'a' is in charset 'latin-1'; send UTF-8",
        ),
        (
            [NAMED, (b"content-type", b"text/plain; charset")],
            "The Content-Type of a part has a parameter that is not a name=value pair",
        ),
    ],
)
def test_s37_a_part_that_is_not_clear_is_400(raw: RawHeaders, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        parse_head(raw)
    assert refused.value.message == message
