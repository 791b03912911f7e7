"""Header values with parameters: S-22, and the syntax of RFC 9110, 5.6.6."""

import time

import pytest
from hypothesis import given, strategies as st

from treefold_http._headers.header_params import MAX_LENGTH, parse_header


@pytest.mark.parametrize(
    ("text", "value", "params"),
    [
        ("text/plain", "text/plain", {}),
        ("", "", {}),
        ("  Form-Data ", "form-data", {}),
        ("form-data; name=a", "form-data", {"name": "a"}),
        ("form-data;name=a;filename=b", "form-data", {"name": "a", "filename": "b"}),
        ("form-data ;\t NAME = a".replace(" = ", "="), "form-data", {"name": "a"}),
        ("a; ;; b=1; ", "a", {"b": "1"}),
        ("a; b=", "a", {"b": ""}),
        ('a; b=""', "a", {"b": ""}),
        ('a; b="x; y=z" ; c=d', "a", {"b": "x; y=z", "c": "d"}),
        (r'a; b="say \"hi\""', "a", {"b": 'say "hi"'}),
        (r'a; b="back\\slash"', "a", {"b": r"back\slash"}),
        (r'a; b="C:\dir\file.txt"', "a", {"b": r"C:\dir\file.txt"}),
        ('a; b="naïve ☃.txt"', "a", {"b": "naïve ☃.txt"}),
        ("a; b=some file.txt ; c=d", "a", {"b": "some file.txt", "c": "d"}),
        ("a; boundary=----=_Part_0_1.2", "a", {"boundary": "----=_Part_0_1.2"}),
        ("a; filename*=UTF-8''x; filename=y", "a", {"filename*": "UTF-8''x", "filename": "y"}),
    ],
)
def test_a_value_and_its_parameters_are_read(text: str, value: str, params: dict[str, str]) -> None:
    assert parse_header(text) == (value, params)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a; b" + "c" * MAX_LENGTH, "is longer than 4096 characters"),
        ("a; b=\x00", "holds a control character"),
        ("a; b=c\r\nd", "holds a control character"),
        ("a\x7f", "holds a control character"),
        ("a; b=1; B=2", "repeats the parameter 'b'"),
        ("a; b", "has a parameter that is not a name=value pair"),
        ("a; =b", "has a parameter that is not a name=value pair"),
        ("a; b =c", "has a parameter that is not a name=value pair"),
        ("a; b; c=d", "has a parameter that is not a name=value pair"),
        ('a; b="c', "has a quoted value without an end"),
        (r'a; b="c\"', "has a quoted value without an end"),
        ('a; b="c"d', "has text after a quoted value"),
        ('a; b=c"d"', "has a quote inside a value that does not start with one"),
    ],
)
def test_what_cannot_be_read_in_one_way_only_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse_header(text)
    assert str(refused.value) == reason


_names = st.from_regex(r"[a-z!#$%&'*+.^_`|~-]{1,8}", fullmatch=True)
_texts = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=30)


@given(params=st.dictionaries(_names, _texts, max_size=5))
def test_a_quoted_parameter_comes_back_as_it_was(params: dict[str, str]) -> None:
    quoted = [
        f'{name}="{value}"'
        for name, value in (
            (name, text.replace("\\", "\\\\").replace('"', '\\"')) for name, text in params.items()
        )
    ]
    assert parse_header("; ".join(["value", *quoted])) == ("value", params)


@given(text=st.text(alphabet='ab;=",\\ \t\x00é', max_size=60))
def test_any_text_is_read_or_refused_with_a_value_error(text: str) -> None:
    try:
        _, params = parse_header(text)
    except ValueError:
        return
    assert all(name == name.lower() and "\x00" not in value for name, value in params.items())


@pytest.mark.parametrize("unit", [";", '"', "\\", 'a="\\";', "a=", '\\"', "; ", ";\\,"])
def test_s22_no_mix_of_delimiters_is_slow(unit: str) -> None:
    started = time.process_time()
    for prefix in ("", 'v; a="', "v;"):
        for size in (MAX_LENGTH - 8, 30_000):
            try:
                parse_header(prefix + (unit * size)[:size])
            except ValueError:
                continue
    assert time.process_time() - started < 0.1
