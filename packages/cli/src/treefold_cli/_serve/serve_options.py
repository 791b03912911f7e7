"""The options of `serve` that are settings: one table, from the option to the typed value."""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import typer

from treefold_cli._console.errors import MISUSE, CommandError
from treefold_cli._console.options import parse_number_option

if TYPE_CHECKING:
    from treefold_http import Settings


class _Option(NamedTuple):
    """One option.

    Attributes:
        metavar: what it takes.
        help: a sentence.
        read: takes the text and the option's name, returns the value.
        is_of_server: True for a setting of the table `[serve]`.
    """

    metavar: str
    help: str
    read: Callable[[str, str], Any]
    is_of_server: bool = True


def _require_nonempty_text(text: str, name: str) -> str:
    if not text:
        raise CommandError(f"Invalid value '' for {name}; give a value", code=MISUSE)
    return text


def _parse_comma_list(text: str, name: str) -> tuple[str, ...]:
    return tuple(
        part.strip() for part in _require_nonempty_text(text, name).split(",") if part.strip()
    )


def _make_number_parser(low: int, high: int = 10**9 - 1) -> Callable[[str, str], int]:
    return lambda text, name: parse_number_option(text, name, low=low, high=high)


def _parse_seconds(text: str, name: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds < math.inf:
        raise CommandError(
            f"Invalid value {text!r} for {name}; give a number of seconds", code=MISUSE
        )
    return seconds


def _accept_any_host(text: str, name: str) -> str:
    return text  # refused with its reason when it is bound


_OPTIONS: Mapping[str, _Option] = {
    "host": _Option("HOST", "The address to listen on.", _accept_any_host),
    "port": _Option(
        "PORT", "The port to listen on; 0 picks a free one.", _make_number_parser(0, 65535)
    ),
    "workers": _Option("N", "How many processes serve.", _make_number_parser(1, 1000)),
    "uds": _Option(
        "PATH", "Listen on a Unix socket in place of an address.", _require_nonempty_text
    ),
    "fd": _Option(
        "N", "Listen on a socket that this process was started with.", _make_number_parser(0)
    ),
    "tls_certificate": _Option(
        "FILE", "Serve HTTPS with this PEM certificate.", _require_nonempty_text
    ),
    "tls_key": _Option("FILE", "The key of the certificate.", _require_nonempty_text),
    "tls_client_ca": _Option(
        "FILE", "Ask clients for a certificate of these.", _require_nonempty_text
    ),
    "forwarded_allow_ips": _Option(
        "LIST", "Proxies whose X-Forwarded-* is believed.", _parse_comma_list
    ),
    "keep_alive": _Option("SECONDS", "How long an idle connection stays open.", _parse_seconds),
    "grace": _Option("SECONDS", "How long the end waits for running work.", _parse_seconds, False),
    "limit_concurrency": _Option(
        "N", "Most requests at one time in a process.", _make_number_parser(1)
    ),
    "backlog": _Option("N", "Most connections that wait to be accepted.", _make_number_parser(1)),
    "max_requests": _Option(
        "N", "Replace a process after so many requests.", _make_number_parser(1)
    ),
    "max_requests_jitter": _Option("N", "Up to so many more, at random.", _make_number_parser(0)),
    "root_path": _Option(
        "PREFIX", "The prefix that a proxy serves below.", _require_nonempty_text, False
    ),
    "log_level": _Option("LEVEL", "The least level that is logged.", _require_nonempty_text, False),
}


def with_serve_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options to a command that takes them as `**given`, as texts; None is not given."""
    own = inspect.signature(command)
    kept = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                str | None,
                typer.Option(
                    f"--{name.replace('_', '-')}", metavar=option.metavar, help=option.help
                ),
            ],
        )
        for name, option in _OPTIONS.items()
    ]
    changed: Any = command
    changed.__signature__ = own.replace(parameters=[*kept, *added])
    changed.__annotations__ = {p.name: p.annotation for p in (*kept, *added)} | {"return": int}
    return command


def parse_given_options(given: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the values of the options that were given.

    Raises:
        CommandError: for a value that is not of the option's type.
    """
    return {
        name: _OPTIONS[name].read(text, f"--{name.replace('_', '-')}")
        for name, text in given.items()
        if text is not None
    }


def apply_options_to_settings(settings: "Settings", values: Mapping[str, Any]) -> "Settings":
    """Return settings in which the options win.

    Raises:
        SettingsError: for a value outside of its range.
    """
    served = {name: value for name, value in values.items() if _OPTIONS[name].is_of_server}
    others = {name: value for name, value in values.items() if name not in served}
    return replace(settings, **others, serve=replace(settings.serve, **served))


def to_environment_variables(values: Mapping[str, Any]) -> dict[str, str]:
    """Return options as environment variables, which the processes of `--workers` read."""
    return {
        f"TREEFOLD_{'SERVE_' if _OPTIONS[name].is_of_server else ''}{name.upper()}": (
            ",".join(cast("tuple[str, ...]", value)) if isinstance(value, tuple) else str(value)
        )
        for name, value in values.items()
    }
