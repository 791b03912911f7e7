"""The multipart parser by itself: exact bytes, every limit, no slow input (S-36, S-37, S-38)."""

import logging
import os
import time
from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from treefold_http import BadRequest
from treefold_http._bodies.multipart import PartParser
from treefold_http._bodies.part_head import PartHead
from treefold_http._wire.limits import Limits

Encode = Callable[..., bytes]

BOUNDARY = b"X-bound"
LINE = b"\r\n--X-bound"
HEAD = b'--X-bound\r\nContent-Disposition: form-data; name="f"; filename="x"\r\n\r\n'
END = LINE + b"--\r\n"


def parts_of(
    body: bytes, *, sizes: list[int] | None = None, limits: Limits | None = None
) -> list[tuple[str, bytes]]:
    """Parse a body in blocks of the sizes given, the last one repeated."""
    parser = PartParser(BOUNDARY, limits=limits or Limits())
    found: list[tuple[str, list[bytes]]] = []
    rest = iter(sizes or [])
    start, size = 0, len(body) or 1
    while start < len(body):
        size = next(rest, size)
        for event in parser.parse_block(body[start : start + size]):
            if isinstance(event, PartHead):
                found.append((event.name, []))
            else:
                found[-1][1].append(event)
        start += size
    parser.require_closing_boundary()
    return [(name, b"".join(data)) for name, data in found]


def refusal(body: bytes, *, size: int = 1 << 20, limits: Limits | None = None) -> str:
    with pytest.raises(BadRequest) as refused:
        parts_of(body, sizes=[size], limits=limits)
    return refused.value.message


@pytest.mark.parametrize("size", [1, 2, 3, 5, 11, 1000])
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"plain",
        b"\r",
        b"\n",
        b"\r\n",
        b"\r\n--",
        b"\r\n--X-boun",
        b"\r\n--X-bounD",
        b"\r\n--X-boundary",
        b"\r\n--X-bound-x",
        b"\r\n--X-bound\rx",
        b"--X-bound--",
        b"--X-bound\r\n",
        b"\n--X-bound\n",
        b"\r\r\n--X-boun\r\n--X-boun",
        b"\x00\xff" * 40,
        bytes(range(256)),
    ],
)
def test_data_is_exact_however_the_blocks_fall(encode: Encode, data: bytes, size: int) -> None:
    body = encode(('name="a"', data), ('name="b"', data))
    assert parts_of(body, sizes=[size]) == [("a", data), ("b", data)]


_pieces = st.lists(
    st.one_of(
        st.binary(max_size=60),
        st.sampled_from(
            [b"\r", b"\n", b"\r\n", b"\r\n--", b"\r\n--X-boun", b"\r\n--X-bound.", b"--X-bound--"]
        ),
    ),
    max_size=8,
)


@given(
    values=st.lists(_pieces.map(b"".join), max_size=5),
    sizes=st.lists(st.integers(1, 90), min_size=1, max_size=30),
)
def test_any_data_in_any_blocks_comes_back(
    encode: Encode, values: list[bytes], sizes: list[int]
) -> None:
    # What begins a line with the boundary cannot be data (RFC 2046, 5.1.1), save a longer word.
    values = [
        value
        for value in values
        if not any((LINE + tail) in value + b"\r\n" for tail in (b"\r", b"-", b" ", b"\t"))
    ]
    body = encode(*((f'name="{index}"', value) for index, value in enumerate(values)))
    expected = [(str(index), value) for index, value in enumerate(values)]
    assert parts_of(body, sizes=sizes) == expected


@given(
    body=st.lists(
        st.sampled_from(
            [HEAD, END, LINE, b"\r\n", b"--", b"X-bound", b":", b" ", b"x", b'name="', b"\x00"]
        ),
        max_size=12,
    ).map(b"".join),
    sizes=st.lists(st.integers(1, 50), min_size=1, max_size=10),
)
def test_any_bytes_are_parsed_or_refused_with_400(body: bytes, sizes: list[int]) -> None:
    try:
        parts_of(body, sizes=sizes)
    except BadRequest:
        return
    assert b"--X-bound--" in body


@given(
    body=st.lists(
        st.sampled_from(
            [
                HEAD,
                HEAD[9:],
                b"data",
                b"\r",
                LINE,
                LINE + b"x",
                LINE + b" ",
                LINE + b" \t" * 1500,
                b"\r\n--",
            ]
        ),
        max_size=6,
    ).map(b"".join),
    cut=st.integers(1, 60),
)
def test_blocks_change_nothing_but_the_words_of_a_refusal(body: bytes, cut: int) -> None:
    def outcome(sizes: list[int]) -> object:
        try:
            return parts_of(HEAD + body + END, sizes=sizes)
        except BadRequest:
            return "refused"

    assert outcome([cut]) == outcome([len(HEAD + body + END)])


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(
    "before", [b"", b"\r\n", b"This is a preamble.\r\n", b"--X-boundless\r\n", b"--X-boun\r\n"]
)
def test_text_before_the_first_boundary_is_passed_over(before: bytes, size: int) -> None:
    if before == b"--X-boundless\r\n":
        assert refusal(before + HEAD + END, size=size).startswith("The multipart body is malformed")
    else:
        assert parts_of(before + HEAD + b"x" + END, sizes=[size]) == [("f", b"x")]


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("after", [b"", b"\r\n", b"an epilogue", HEAD])
def test_text_after_the_closing_boundary_is_passed_over(after: bytes, size: int) -> None:
    assert parts_of(HEAD + b"x" + LINE + b"--" + after, sizes=[size]) == [("f", b"x")]


def test_a_form_without_parts_is_empty() -> None:
    assert parts_of(b"--X-bound--") == []


@pytest.mark.parametrize("size", [1, 50, 10_000])
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "The multipart body ends before its closing boundary"),
        (b"--X-bound", "The multipart body ends before its closing boundary"),
        (HEAD + b"data", "The multipart body ends before its closing boundary"),
        (HEAD + b"data" + LINE, "The multipart body ends before its closing boundary"),
        (HEAD + b"data" + LINE + b"-", "The multipart body ends before its closing boundary"),
        (HEAD[:-4], "The multipart body ends before its closing boundary"),
        (b"garbage", "The multipart body ends before its closing boundary"),
        (b"p" * 5000 + b"\r\n" + HEAD + END, "No boundary within the first 4096 bytes"),
        (b"p" * 20_000, "No boundary within the first 4096 bytes"),
        (HEAD + END + b"e" * 5000, "More than 4096 bytes after the closing boundary"),
        (
            b"--X-bound\r\n\r\nx" + END,
            'A part has no name; send Content-Disposition: form-data; name="..."',
        ),
    ],
)
def test_s37_a_body_that_is_not_whole_is_400(body: bytes, message: str, size: int) -> None:
    assert refusal(body, size=size) == message


@pytest.mark.parametrize(
    "body",
    [
        b"--X-boundX\r\n" + HEAD,
        b"--X-bound\rX",
        b"--X-bound-X",
        b"--X-bound\r\nbad header: x\r\n\r\n" + END,
        b"--X-bound\r\n: x\r\n\r\n" + END,
        b"--X-bound\r\nno colon\r\n\r\n" + END,
        b"--X-bound\r\na: b\rc\r\n\r\n" + END,
        b"--X-bound\r\na: b\r\n folded\r\n\r\n" + END,
        b"--X-bound\r\n\xff: b\r\n\r\n" + END,
    ],
)
def test_s37_a_malformed_body_is_400(body: bytes) -> None:
    assert refusal(body).startswith("The multipart body is malformed: ")


@pytest.mark.parametrize("size", [1, 50, 1 << 20])
@pytest.mark.parametrize(
    ("limits", "count", "message"),
    [
        (Limits(parts=3), 4, "More than 3 parts"),
        (Limits(files=3), 4, "More than 3 files"),
    ],
)
def test_s36_counts_have_a_limit(
    encode: Encode, limits: Limits, count: int, message: str, size: int
) -> None:
    part = ('name="a"; filename="b"', b"x")
    assert len(parts_of(encode(*[part] * (count - 1)), sizes=[size], limits=limits)) == count - 1
    allowed = {message, message.replace("parts", "boundaries")}
    assert refusal(encode(*[part] * count), size=size, limits=limits) in allowed


def test_s36_sixteen_header_fields_are_taken_and_seventeen_are_not(encode: Encode) -> None:
    lines = [f"X-{index}: y" for index in range(15)]
    assert parts_of(encode(('name="a"', b"1", *lines))) == [("a", b"1")]
    assert "header count" in refusal(encode(('name="a"', b"1", *lines, "X-16: y")))


@pytest.mark.parametrize("size", [50, 1 << 20])
@pytest.mark.parametrize(
    "lines",
    [["X: " + "y" * 8200], ["X" * 8200 + ": y"], [f"X-{i}: " + "y" * 4000 for i in range(3)]],
)
def test_s36_the_header_of_a_part_has_a_limit(encode: Encode, lines: list[str], size: int) -> None:
    message = refusal(encode(('name="a"', b"1", *lines)), size=size)
    assert message in (
        "The header of a part is larger than 8192 bytes",
        "The multipart body is malformed: Maximum header size exceeded",
    )


@pytest.mark.parametrize("block", [4096, 65_536, 1 << 22])
@pytest.mark.parametrize(
    "body",
    [
        HEAD + b"\r" + b"a" * (10 << 20),
        HEAD + b"\r\n" * (5 << 20),
        HEAD + b"\r" * (10 << 20),
        HEAD + (b"\r\n--X-boun" * (1 << 20)),
        HEAD + b"\r\n--X-bound." * (1 << 20),
        HEAD + b"\r\n--X-bound\r." * (1 << 20),
        HEAD + (LINE + b" " * 5000) * 2000,
        HEAD + LINE + b" " * (10 << 20),
        HEAD + (LINE + b" " * 8000 + b"\r\n" + HEAD[11:]) * 1000,
        b"\r\n" * (5 << 20),
        b"-" * (10 << 20),
        b"--X-bound\r\n" + b"a: b\r\n" * (1 << 20),
        b"--X-bound\r\n" + b"a" * (10 << 20),
        b"--X-bound\r\na:" + b" " * (10 << 20),
        (HEAD + b"\r\n") * 20_000,
        HEAD[:-4] + b"\r\nContent-Transfer-Encoding: base64\r\n\r\n" + b" " * (10 << 20),
    ],
    ids=lambda body: repr(body[60:100]),
)
def test_s38_no_input_is_slow(body: bytes, block: int) -> None:
    started = time.process_time()
    refusal(body, size=block, limits=Limits(parts=1000))
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize("size", [50, 1 << 20])
@pytest.mark.parametrize("blanks", [b" " * 100, b"\t" * 8000, b" " * 20_000])
def test_s38_many_blanks_after_a_boundary_are_400(encode: Encode, blanks: bytes, size: int) -> None:
    first, second = encode(('name="a"', b"1"), end=False)[:-2], HEAD[9:] + b"2" + END
    assert len(parts_of(first + LINE + second)) == 2
    message = refusal(first + LINE + blanks + second, size=size)
    assert message.startswith("The multipart body is malformed: ")


def test_s38_blanks_without_an_end_are_refused_before_the_body_ends() -> None:
    message = refusal(HEAD + LINE + b" " * 20_000, size=5000)
    assert message == "The multipart body is malformed: whitespace after a boundary"


def test_s38_a_refused_body_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    refusal(b"--X-bound\r\nbad header: x\r\n\r\n")
    assert caplog.records == []


def test_a_large_block_of_data_is_not_copied() -> None:
    block = os.urandom(1 << 16).replace(b"\r", b"\n")
    parser = PartParser(BOUNDARY, limits=Limits())
    parser.parse_block(HEAD + b"x" * 100)
    (event,) = parser.parse_block(block)
    assert event is block
