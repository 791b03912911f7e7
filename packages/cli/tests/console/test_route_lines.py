"""The order of routes and the tree of their URLs."""

from treefold_cli._console.route_lines import render_route_tree, sort_by_url
from treefold_router import Route


def route(method: str, template: str) -> Route:
    version = template.split("/")[1]
    return Route(method, version, template, "", ())


ROUTES = [
    route("GET", "/v10/user"),
    route("WEBSOCKET", "/v2/user"),
    route("DELETE", "/v2/user/{id}"),
    route("POST", "/v2/user"),
    route("GET", "/v2/user/me/role"),
    route("GET", "/v2/user"),
    route("GET", "/v2"),
]


def test_routes_are_sorted_by_version_number_then_url_then_method():
    assert [(found.template, found.method) for found in sort_by_url(ROUTES)] == [
        ("/v2", "GET"),
        ("/v2/user", "GET"),
        ("/v2/user", "POST"),
        ("/v2/user", "WEBSOCKET"),
        ("/v2/user/me/role", "GET"),
        ("/v2/user/{id}", "DELETE"),
        ("/v10/user", "GET"),
    ]


def test_the_tree_shows_each_segment_once_with_its_methods():
    assert list(render_route_tree(ROUTES)) == [
        "/v2          GET",
        "  /user      GET POST WEBSOCKET",
        "    /me",
        "      /role  GET",
        "    /{id}    DELETE",
        "/v10",
        "  /user      GET",
    ]


def test_no_routes_draw_nothing():
    assert list(render_route_tree([])) == []
