"""YAML as `treefold openapi --format yaml` writes it, read back by a library that can."""

from typing import Any, cast

import yaml
from hypothesis import example, given, settings, strategies as st

from treefold_cli._console.yaml import to_yaml

TEXTS = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    ["on", "1e3", "0x1f", "~", "2001-01-01", "<<", "=", "a: b", "- a", "? a", "%TAG", "...", "---"]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=15,
)


@settings(max_examples=500, deadline=None)
@given(VALUES)
@example({"": ["", {}], "\x85\u2028": [[[]], [{"a": [1]}]]})
def test_it_means_the_same_to_a_reader(value: Any) -> None:
    read = yaml.safe_load(to_yaml(value))

    assert _numbers_as_text(read) == _numbers_as_text(value)


def _numbers_as_text(value: Any) -> Any:
    """YAML 1.1 takes `1e+16` for text, as JSON writes it: the same number to YAML 1.2."""
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        return {key: _numbers_as_text(item) for key, item in table.items()}
    if isinstance(value, list):
        return [_numbers_as_text(item) for item in cast("list[Any]", value)]
    if isinstance(value, float):
        return repr(value)
    return value
