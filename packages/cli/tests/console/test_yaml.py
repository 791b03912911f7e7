"""YAML of JSON values: what is written; that it is read back is tested with a YAML library."""

import pytest

from treefold_cli._console.yaml import to_yaml


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({}, "{}\n"),
        ([], "[]\n"),
        ("word", "word\n"),
        ("two words", "two words\n"),
        ("", '""\n'),
        ("no", '"no"\n'),
        ("Null", '"Null"\n'),
        ("404", '"404"\n'),
        ("a: b", '"a: b"\n'),
        ("a #b", '"a #b"\n'),
        ("- a", '"- a"\n'),
        (" a", '" a"\n'),
        ("a ", '"a "\n'),
        ('"\\\n\t', '"\\"\\\\\\n\\t"\n'),
        ("\x85\u2028\ufeff\x1b\x7f\ud800", '"\\u0085\\u2028\\ufeff\\u001b\\u007f\\ud800"\n'),
        ("\U0001f600\U000e0001", '"\U0001f600\\U000e0001"\n'),
        (True, "true\n"),
        (None, "null\n"),
        (1.5, "1.5\n"),
        ({"200": {"a": []}, "b": None}, '"200":\n  a: []\nb: null\n'),
        ([1, [2, 3], {"a": 1, "b": [4]}], "- 1\n- - 2\n  - 3\n- a: 1\n  b:\n    - 4\n"),
        ({"/v1/user/{id}": {"$ref": "#/x"}}, '/v1/user/{id}:\n  "$ref": "#/x"\n'),
    ],
)
def test_a_value_has_one_spelling(value: object, text: str):
    assert to_yaml(value) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_is_refused(value: float):
    with pytest.raises(ValueError, match="Out of range float values are not JSON compliant"):
        to_yaml(value)


@pytest.mark.parametrize(("value", "kind"), [(object(), "object"), ({"a": {1, 2}}, "set")])
def test_a_value_without_a_json_form_is_refused(value: object, kind: str):
    with pytest.raises(TypeError, match=f"Object of type {kind} is not JSON serializable"):
        to_yaml(value)
