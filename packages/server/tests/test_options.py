"""Options out of their range are refused when they are given, not when they are used."""

from dataclasses import fields
from typing import Any

import pytest

import treefold_server
from treefold_server import ServerError, ServerOptions
from treefold_server.__main__ import HELP


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"port": 65536}, "Option port must be a number from 0 to 65535, got 65536"),
        ({"workers": 0}, "Option workers must be a number from 1 to 1000, got 0"),
        ({"limit_concurrency": 0}, "Option limit_concurrency must be a number from 1, got 0"),
        ({"grace": -1.0}, "Option grace must be a number from 0, got -1.0"),
        ({"keep_alive": 0}, "Option keep_alive must be a number above 0, got 0"),
        ({"send_timeout": float("inf")}, "Option send_timeout must be a number above 0, got inf"),
        ({"uds": "a", "fd": 3}, "Options uds and fd exclude each other; give one"),
        ({"tls_key": "a"}, "Option tls_key needs tls_certificate"),
        ({"tls_client_ca": "a"}, "Option tls_client_ca needs tls_certificate"),
        ({"lifespan": "yes"}, "Option lifespan must be 'auto', 'on' or 'off', got 'yes'"),
    ],
)
def test_a_value_out_of_its_range_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ServerError) as refused:
        ServerOptions(**given)
    assert (str(refused.value), refused.value.exit_code) == (message, 2)


def test_no_limit_of_requests_is_an_option() -> None:
    assert ServerOptions(limit_concurrency=None).limit_concurrency is None


def test_every_option_but_a_function_is_one_of_the_command() -> None:
    assert HELP.keys() == {each.name for each in fields(ServerOptions)} - {"overload_app"}


def test_the_package_has_at_most_twelve_names() -> None:
    names = [name for name in treefold_server.__all__ if name != "__version__"]
    assert [name for name in names if not hasattr(treefold_server, name)] == []
    assert len(names) <= 12
