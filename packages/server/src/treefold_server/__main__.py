"""`python -m treefold_server module:app`: each option of the server is an option of the command."""

import argparse
import sys
from dataclasses import fields
from typing import Any

from treefold_server import ServerError, ServerOptions, serve

HELP = {
    "host": "the address to listen on",
    "port": "the port to listen on; 0 picks a free one",
    "workers": "how many processes serve",
    "uds": "listen on a Unix socket in place of an address",
    "fd": "listen on a socket that this process was started with",
    "tls_certificate": "serve HTTPS with this PEM certificate",
    "tls_key": "the key of the certificate",
    "tls_client_ca": "ask clients for a certificate of these",
    "forwarded_allow_ips": "proxies whose X-Forwarded-* is believed, with commas between them",
    "keep_alive": "seconds that an idle connection stays open",
    "grace": "seconds that the end waits for requests in progress",
    "limit_concurrency": "most requests at one time in a process",
    "backlog": "most connections that wait to be accepted",
    "max_requests": "replace a process after so many requests",
    "max_requests_jitter": "up to so many more, at random",
    "worker_timeout": "seconds in which a process must answer its supervisor",
    "send_timeout": "seconds in which a client must read of its response",
    "send_rate": "fewest bytes a second that such a client reads",
    "lifespan": "on, off, or auto: the application may fail the events of its start and end",
}
"""What `--help` says of each option."""
_OF_NUMBERS = {"fd", "limit_concurrency", "max_requests"}
"""Options without a default that would tell their type."""


def main() -> None:
    """Serve until a stop signal; exit with 2 for a wrong option, 1 if the server cannot start."""
    parser = argparse.ArgumentParser(prog="python -m treefold_server", allow_abbrev=False)
    parser.add_argument("app", metavar="MODULE:APP", help="the ASGI application")
    parser.add_argument("--factory", action="store_true", help="APP is called to get it")
    for option in fields(ServerOptions):
        if option.name in HELP:
            parser.add_argument(
                f"--{option.name.replace('_', '-')}",
                type=_choose_parser(option.name, option.default),
                default=option.default,
                help=HELP[option.name],
            )
    given = vars(parser.parse_args())
    app, is_factory = given.pop("app"), given.pop("factory")
    try:
        serve(app, ServerOptions(**given), is_factory=is_factory)
    except ServerError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def _choose_parser(name: str, default: object) -> Any:
    if isinstance(default, tuple):
        return _split_list
    return int if name in _OF_NUMBERS else str if default is None else type(default)


def _split_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


if __name__ == "__main__":
    main()
