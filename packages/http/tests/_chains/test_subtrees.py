"""Prefixes of `under`: segment by segment, `*`, and the paths that only mounts can have."""

from __future__ import annotations

import pytest

from treefold_http import under
from treefold_http._chains.subtrees import Under
from treefold_http._wire.path_segments import decode_segments, list_possible_readings
from treefold_http.middleware import IPAllowlist
from treefold_router import Route


def scoped(prefix: str) -> Under:
    return under(prefix, IPAllowlist(["10.0.0.1"]))


@pytest.mark.parametrize(
    ("prefix", "template", "covered"),
    [
        ("/*/admin", "/v1/admin", True),
        ("/*/admin", "/v2/admin/{id}", True),
        ("/*/admin", "/v1/x/admin", False),
        ("/*/admin", "/v1", False),
        ("/v1/*/posts", "/v1/{user}/posts", True),
        ("/v1/*", "/v1/user", True),
        ("/v1/*", "/v1", False),
        ("/*", "/v1", True),
        ("/**/admin", "/v1/admin", False),
    ],
)
def test_a_star_is_one_segment(prefix: str, template: str, covered: bool) -> None:
    assert scoped(prefix).covers_route(Route("GET", "v1", template, "x", ())) is covered


@pytest.mark.parametrize(
    ("prefix", "path", "covered"),
    [
        ("/static", "/static/a", True),
        ("/static", "/static", True),
        ("/static", "/statics", False),
        ("/Static/Private", "/static/private/x", True),
        ("/static/private", "/static/PRIVATE/x", True),
        ("/static/*/x", "/static/a/x", True),
        ("/static/*/x", "/static/a/b/x", False),
        ("/static/a b", "/static/a%20b", True),
        ("/static/a%20b", "/static/a%20b", True),
        ("/static/straße", "/static/STRASSE", True),
        ("/*", "/livez", True),
        ("/*/admin", "/legacy/admin", True),
    ],
)
def test_s06_a_path_outside_the_table_is_compared_by_segments(
    prefix: str, path: str, covered: bool
) -> None:
    spellings = list_possible_readings(decode_segments(path.encode()), 1)

    assert scoped(prefix).covers_path(spellings) is covered


@pytest.mark.parametrize(
    ("prefix", "may_cover"),
    [
        ("/", True),
        ("/static", True),
        ("/*/admin", True),
        ("/v1", False),
        ("/v1/static", False),
        ("/static/{id}", False),
        ("/v1x", True),
    ],
)
def test_versions_and_parameters_are_those_of_routes(prefix: str, may_cover: bool) -> None:
    assert scoped(prefix).may_cover_paths is may_cover


def test_a_prefix_inside_a_prefix_is_refused() -> None:
    with pytest.raises(TypeError, match=r"got under\('/v1/a'\); write one prefix for both"):
        under("/v1", scoped("/v1/a"))
