"""How a command meets the server: the options that it gets of the settings, and its errors."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import fields

from treefold_cli._console.errors import CommandError
from treefold_http import Settings, refuse_overload
from treefold_server import ServerError, ServerOptions


def build_server_options(settings: Settings | None = None) -> ServerOptions:
    """Return what the server gets of the settings of a project; of their defaults without them."""
    settings = settings or Settings()
    given = {each.name: getattr(settings.serve, each.name) for each in fields(settings.serve)}
    given["limit_concurrency"] = settings.serve.limit_concurrency or settings.limit_concurrency
    return ServerOptions(**given, grace=settings.grace, lifespan="on", overload_app=refuse_overload)


@contextmanager
def translate_server_errors() -> Generator[None]:
    """Convert an error of the server into a CommandError with its exit code."""
    try:
        yield
    except ServerError as error:
        raise CommandError(str(error), code=error.exit_code) from error
