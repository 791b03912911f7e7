"""The server gets what the settings of a project say."""

from dataclasses import fields
from typing import Any

from treefold_cli._serve.server_options import build_server_options
from treefold_http import ServeSettings, Settings, refuse_overload
from treefold_server import ServerOptions


def test_every_setting_of_the_table_serve_reaches_the_server() -> None:
    given: dict[str, Any] = {
        **{"host": "::1", "port": 1, "workers": 2, "uds": "x.sock", "fd": None},
        **{"tls_certificate": "a.pem", "tls_key": "b.pem", "tls_client_ca": "c.pem"},
        **{"forwarded_allow_ips": ("10.0.0.1",), "keep_alive": 1.5, "limit_concurrency": 3},
        **{"backlog": 4, "max_requests": 5, "max_requests_jitter": 6},
        **{"worker_timeout": 6.5, "send_timeout": 7.5, "send_rate": 8},
    }
    assert given.keys() == {each.name for each in fields(ServeSettings)}
    options = build_server_options(Settings(serve=ServeSettings(**given), grace=9.5))
    assert options == ServerOptions(**given, grace=9.5, lifespan="on", overload_app=refuse_overload)


def test_the_limit_of_requests_is_that_of_the_application_unless_the_server_has_its_own() -> None:
    assert build_server_options(Settings(limit_concurrency=10)).limit_concurrency == 10
    own = Settings(limit_concurrency=10, serve=ServeSettings(limit_concurrency=20))
    assert build_server_options(own).limit_concurrency == 20


def test_without_settings_the_server_has_its_own_defaults() -> None:
    expected = ServerOptions(lifespan="on", overload_app=refuse_overload)
    assert build_server_options() == expected
