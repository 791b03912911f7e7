"""JSON both ways. Where msgspec is installed it encodes, and all of this holds as well."""

from __future__ import annotations

import base64
import collections
import contextlib
import dataclasses
import datetime as dt
import decimal
import enum
import json
import math
import sys
import types
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from http_ids import stable_repr
from hypothesis import example, given, strategies as st

from treefold_http import BadRequest, QueryParams
from treefold_http._json.json import dumps, encode_json_with_stdlib, loads

Encoder = Callable[[Any], bytes]

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=20,
)

both = pytest.mark.parametrize("encode", [dumps, encode_json_with_stdlib], ids=["dumps", "strict"])


class Colour(enum.Enum):
    RED = "red"
    ONE = 1
    PAIR = (1, 2)


class Level(enum.IntEnum):
    LOW = 1


class Name(enum.StrEnum):
    ADA = "ada"


@dataclasses.dataclass
class Point:
    x: int
    y: list[int]
    _note: str = "n"


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    at: dt.date
    inner: Point | None = None


class Text(str):
    __slots__ = ()


class Whole(int):
    pass


class Pair(NamedTuple):
    a: int
    b: None


UTC = dt.UTC
TWO = dt.timezone(dt.timedelta(hours=2))


@given(VALUES)
@example({"null": None, "\u2028": "\x00\x7f</script>", "": [[], {}, -0.0, 2**64, 5e-324]})
def test_what_is_written_reads_back(value: Any) -> None:
    assert loads(dumps(value)) == value
    assert loads(encode_json_with_stdlib(value)) == value


@given(VALUES)
def test_both_encoders_write_the_same_value_in_the_same_order(value: Any) -> None:
    ours, theirs = dumps(value), encode_json_with_stdlib(value)

    assert json.loads(ours) == json.loads(theirs)
    assert list(json.loads(ours) if isinstance(value, dict) else []) == list(
        json.loads(theirs) if isinstance(value, dict) else []
    )


@both
def test_output_is_compact_utf8(encode: Encoder) -> None:
    assert encode({"ä": [1, "ü€", None, True]}) == '{"ä":[1,"ü€",null,true]}'.encode()


FORMS: list[tuple[Any, Any]] = [
    (dt.datetime(2030, 1, 2, 3, 4, 5), "2030-01-02T03:04:05"),
    (dt.datetime(2030, 1, 2, 3, 4, 5, 6, UTC), "2030-01-02T03:04:05.000006Z"),
    (dt.datetime(2030, 1, 2, 3, 4, 5, tzinfo=TWO), "2030-01-02T03:04:05+02:00"),
    (dt.date(2030, 1, 2), "2030-01-02"),
    (dt.time(3, 4), "03:04:00"),
    (dt.time(3, 4, tzinfo=UTC), "03:04:00Z"),
    (dt.timedelta(0), "P0D"),
    (dt.timedelta(days=1), "P1D"),
    (dt.timedelta(days=1, seconds=3661, microseconds=5), "P1DT3661.000005S"),
    (-dt.timedelta(seconds=90, microseconds=500_000), "-PT90.5S"),
    (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (decimal.Decimal("1.10"), "1.10"),
    (decimal.Decimal("1E+3"), "1E+3"),
    (Colour.RED, "red"),
    (Colour.ONE, 1),
    (Colour.PAIR, [1, 2]),
    (Level.LOW, 1),
    (Name.ADA, "ada"),
    (Text("t"), "t"),
    (Whole(5), 5),
    ({1}, [1]),
    (frozenset({"a"}), ["a"]),
    ((1, (2,)), [1, [2]]),
    (Pair(1, None), [1, None]),
    (b"\x00\xff", base64.b64encode(b"\x00\xff").decode()),
    (bytearray(b"a"), "YQ=="),
    (memoryview(b"a"), "YQ=="),
    (collections.OrderedDict(b=1, a=None), {"b": 1, "a": None}),
    (types.MappingProxyType({"a": {1}}), {"a": [1]}),
    (QueryParams.parse(b"a=1&a=2"), {"a": "1"}),
    (Point(1, [2]), {"x": 1, "y": [2], "_note": "n"}),
    (
        [Slotted(dt.date(2030, 1, 2), Point(1, []))],
        [{"at": "2030-01-02", "inner": {"x": 1, "y": [], "_note": "n"}}],
    ),
    (Slotted(dt.date(2030, 1, 2)), {"at": "2030-01-02", "inner": None}),
    ({1: 1, 1.5: 2, None: 4, Name.ADA: 5}, {"1": 1, "1.5": 2, "null": 4, "ada": 5}),
    ({True: 1, Level.LOW + 1: 2, Whole(5): 3}, {"true": 1, "2": 2, "5": 3}),
    (2**64, 2**64),
    (-(2**70), -(2**70)),
    (10**400, 10**400),
]


@both
@pytest.mark.parametrize(("value", "form"), FORMS, ids=stable_repr)
def test_every_type_has_one_form(encode: Encoder, value: Any, form: Any) -> None:
    assert json.loads(encode(value)) == form


class Modelled:
    """What a pydantic model looks like to an encoder."""

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        return {"mode": mode, "at": "2030-01-02"}


@both
def test_a_model_that_dumps_itself_is_an_object(encode: Encoder) -> None:
    assert json.loads(encode([Modelled()])) == [{"mode": "json", "at": "2030-01-02"}]


@both
@pytest.mark.parametrize(
    "value",
    [
        object(),
        [object()],
        {"a": {"b": object()}},
        1j,
        range(3),
        iter([1]),
        Point,
        Modelled,
        Exception("secret"),
        collections.deque([1]),
        {"a": 1}.keys(),
        ...,
        len,
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_type_without_a_form_is_refused_by_name(encode: Encoder, value: Any) -> None:
    inner = value
    while isinstance(inner, (dict, list)):
        inner = next(iter(inner.values() if isinstance(inner, dict) else inner))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - any value
    name = type(inner).__qualname__  # pyright: ignore[reportUnknownArgumentType] - any value
    with pytest.raises(
        TypeError,
        match=f"^'{name}' has no JSON form; return a type that has one, or set response_model$",
    ):
        encode(value)


AROUND_KEYS: list[Callable[[Any], Any]] = [
    lambda mapping: mapping,
    lambda mapping: [{"a": (mapping,)}],
    lambda mapping: Point(1, mapping),
    lambda mapping: types.MappingProxyType(mapping),
]


@both
@pytest.mark.parametrize(
    ("key", "name"),
    [
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (dt.date(2030, 1, 2), "2030-01-02"),
        (Colour.RED, "red"),
        (Colour.ONE, "1"),
        (b"a", "YQ=="),
        (decimal.Decimal("1.0"), "1.0"),
    ],
    ids=stable_repr,
)
@pytest.mark.parametrize("wrap", AROUND_KEYS, ids=["bare", "nested", "dataclass", "mapping"])
def test_a_key_that_has_a_text_form_is_written_as_text(
    encode: Encoder, key: Any, name: str, wrap: Callable[[Any], Any]
) -> None:
    assert json.loads(encode(wrap({key: 1}))) == json.loads(encode(wrap({name: 1})))


@both
@pytest.mark.parametrize(
    "key",
    [(1, 2), object(), frozenset[int](), Colour.PAIR],
    ids=["tuple", "object", "frozenset", "enum"],
)
def test_a_key_without_a_text_form_is_refused(encode: Encoder, key: object) -> None:
    with pytest.raises(
        TypeError, match=r"^'.*' (cannot be a JSON member name; use str|has no JSON form; .*)$"
    ):
        encode({"a": [{key: 1}]})


AROUND_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "bare": lambda n: n,
    "list": lambda n: [n],
    "nested": lambda n: {"a": [1, {"b": n}]},
    "beside null": lambda n: {"null": None, "b": n},
    "tuple": lambda n: (n,),
    "dataclass": lambda n: Point(n, []),
}


@both
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf], ids=stable_repr)
@pytest.mark.parametrize("wrap", AROUND_NUMBERS.values(), ids=AROUND_NUMBERS)
def test_no_nan_and_no_infinity_is_ever_written(
    encode: Encoder, number: float, wrap: Callable[[Any], Any]
) -> None:
    with pytest.raises(ValueError, match=r"(?i)float"):
        encode(wrap(number))


@both
@pytest.mark.parametrize("value", ["\ud800", ["a\udfff"], {"\udc00": 1}, "\udc00\ud800"], ids=ascii)
def test_a_lone_surrogate_is_never_written(encode: Encoder, value: Any) -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        encode(value)


def _cycles() -> Iterator[Any]:
    around: list[Any] = []
    around.append(around)
    yield around
    mapping: dict[str, Any] = {}
    mapping["a"] = {"b": mapping}
    yield mapping
    point = Point(1, [])
    point.y.append(point)  # pyright: ignore[reportArgumentType] - the cycle is the case
    yield point


@both
@pytest.mark.parametrize("value", list(_cycles()), ids=["list", "dict", "dataclass"])
def test_a_cycle_ends_in_an_error_and_not_in_a_crash(encode: Encoder, value: Any) -> None:
    with pytest.raises(RecursionError):
        encode(value)


@both
@pytest.mark.parametrize(
    "inner", [list[Any], lambda: {"a": 1}, lambda: (1,)], ids=["list", "dict", "tuple"]
)
def test_output_that_is_nested_deeply_is_whole_or_an_error(
    encode: Encoder, inner: Callable[[], Any]
) -> None:
    value: Any = inner()
    for _ in range(100_000):
        value = [value]
    try:
        text = encode(value)
    except RecursionError:
        return
    # from 3.14 on Python measures its stack, which may have room for it, and counts no calls
    assert sys.version_info >= (3, 14)
    assert text == b"[" * 100_000 + encode(inner()) + b"]" * 100_000


@both
def test_an_encoder_works_again_after_it_failed(encode: Encoder) -> None:
    shared = [1]
    for bad, message in (
        (object(), "'object' has no JSON form"),
        (math.nan, "not JSON compliant"),
        ("\ud800", "surrogates not allowed"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            encode({"a": shared, "b": [shared, bad]})

    assert encode({"a": shared, "b": [shared, shared]}) == b'{"a":[1],"b":[[1],[1]]}'


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"{}", {}),
        (b"null", None),
        (b" \t\r\n[1]\n", [1]),
        (b"\xef\xbb\xbf{}", {}),
        (b'"\\ud83d\\ude00"', "😀"),
        (b'"\\\\ud800"', "\\ud800"),
        (b'"\\u0000"', "\x00"),
        (b"-0", 0),
        (b"1e-400", 0.0),
        (b"1E5", 100000.0),
        (b"9" * 4300, int("9" * 4300)),
        ("[" * 100 + "]" * 100, None),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_valid_document_is_read(body: bytes | str, value: Any) -> None:
    if isinstance(body, str):
        assert loads(body.encode()) is not None
    else:
        assert loads(body) == value


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "Expecting value at line 1 column 1"),
        (b" ", "Expecting value at line 1 column 2"),
        (b"\xef\xbb\xbf", "Expecting value at line 1 column 1"),
        (b"{", "Expecting property name enclosed in double quotes at line 1 column 2"),
        (b'{"a":1,}', None),
        (b"{'a':1}", None),
        (b'{"a" 1}', None),
        (b"[1,]", None),
        (b"[1 2]", None),
        (b"01", None),
        (b"+1", None),
        (b".5", None),
        (b"1.", None),
        (b"0x1", None),
        (b"tru", None),
        (b"True", None),
        (b'"\x01"', None),
        (b'"a\nb"', None),
        (b'"\\x41"', None),
        (b'"\\u12"', None),
        (b"1 2", None),
        (b"{}{}", None),
        (b"// c\n1", None),
        (b"\xef\xbb\xbf\xef\xbb\xbf{}", None),
        (b"NaN", "NaN is not a JSON value"),
        (b"[NaN]", "NaN is not a JSON value"),
        (b"[Infinity]", "Infinity is not a JSON value"),
        (b'{"a":-Infinity}', "-Infinity is not a JSON value"),
        (b"[1e999]", "a number is out of range"),
        (b"-1e999", "a number is out of range"),
        (b"9" * 4000 + b".5", "a number is out of range"),
        (b"9" * 4301, "an integer has too many digits"),
        (b"[-" + b"9" * 5000 + b"]", "an integer has too many digits"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b"[" * 100_000 + b"]" * 100_000, "it is nested too deeply"),
        (b'{"a":' * 100_000, "it is nested too deeply"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "it is nested too deeply"),
        (b'{"role":"user","role":"admin"}', "an object has two members of the same name"),
        (b'{"role":"user","r\\u006fle":"admin"}', "an object has two members of the same name"),
        (b'[{"x":{"a":1,"a":1}}]', "an object has two members of the same name"),
        (b'["\\ud800"]', "it is not UTF-8 text"),
        (b'{"\\uDFFF":1}', "it is not UTF-8 text"),
        (b'"\\udc00\\ud800"', "it is not UTF-8 text"),
        (b'"\xed\xa0\x80"', "it is not UTF-8 text"),
        (b'"\xff"', "it is not UTF-8 text"),
        (b'"\xc0\xaf"', "it is not UTF-8 text"),
        ("{}".encode("utf-16"), "it is not UTF-8 text"),
        ("{}".encode("utf-16-le"), None),
        ("[1]".encode("utf-32"), "it is not UTF-8 text"),
        (b"\x00", None),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_hostile_document_is_a_bad_request(body: bytes, reason: str | None) -> None:
    with pytest.raises(BadRequest) as caught:
        loads(body)

    assert caught.value.message.startswith("The body is not valid JSON: ")
    assert reason is None or caught.value.message == f"The body is not valid JSON: {reason}"
    assert len(caught.value.message) < 200


@given(st.binary())
@example(b'{"a":"\\ud800')
def test_any_bytes_are_a_document_or_a_bad_request(body: bytes) -> None:
    try:
        value = loads(body)
    except BadRequest:
        return
    assert loads(encode_json_with_stdlib(value)) == value


@given(VALUES, st.integers(0, 200), st.binary(max_size=3))
def test_a_document_that_is_damaged_never_fails_in_another_way(
    value: Any, at: int, noise: bytes
) -> None:
    body = bytearray(encode_json_with_stdlib(value))
    body[at : at + 1] = noise
    with contextlib.suppress(BadRequest):
        loads(bytes(body))


def test_a_refusal_says_nothing_of_the_body() -> None:
    with pytest.raises(BadRequest) as caught:
        loads(b'{"password":"s3cret"')

    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
