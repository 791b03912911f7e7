"""Findings of a deployment: for the report of `check --deploy`, and as warnings of `serve`.

What is a mistake is decided in `treefold_http.deploy`; only whether Redis answers is asked here.
"""

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from treefold_cli._checks.findings import ENVIRONMENT, Kind, Problem
from treefold_cli._checks.redis_login import (
    DriverMissing,
    Unreachable,
    find_redis_urls,
    log_in_and_ping_redis,
)
from treefold_logging import get_logger

if TYPE_CHECKING:
    from treefold_http import Application, Settings
    from treefold_http.deploy import Finding


def find_deploy_problems(app: "Application", *, is_booted: bool) -> Iterator[Problem]:
    """Yield the findings of a deployment, as problems of a report.

    Args:
        app: the application; its settings can be read.
        is_booted: False if its boot failed.
    """
    from treefold_http.deploy import SEVERE, check_deployment

    more = list(_find_unreachable_redis(app.settings))
    for finding in check_deployment(app, is_booted=is_booted, more=more):
        yield Problem(
            Kind.DEPLOY,
            finding.text,
            (finding.file,),
            code=finding.kind.id,
            attack=finding.kind.attack,
            write=finding.write,
            is_severe=finding.kind.severity == SEVERE,
        )


def start_deployment_check(app: "Application") -> None:
    """Log the severe findings of a booted application, from a thread: a server does not wait.

    For one that other machines reach. The checks take 150 ms for 1,000 routes.
    """
    # Imported here: two threads that import modules of one package can see half of one.
    from treefold_http.deploy import SEVERE, check_deployment

    def log_severe_findings() -> None:
        try:
            found = [each for each in check_deployment(app) if each.kind.severity == SEVERE]
        except Exception as error:  # a check must not hide that it failed, nor end a server
            get_logger().error("the deployment could not be checked", exc_info=error)
            return
        for each in found:
            place = f"{each.file}: {each.write}"
            get_logger().warning("%s: %s; write in %s", each.kind.id, each.text, place)

    threading.Thread(target=log_severe_findings, name="treefold-deploy", daemon=True).start()


def _find_unreachable_redis(settings: "Settings") -> Iterator["Finding"]:
    """Yield each Redis of environment and settings that does not answer, once per server."""
    from treefold_http.deploy import REDIS_UNREACHABLE

    for name, url in find_redis_urls(settings):
        try:
            log_in_and_ping_redis(url)
        except DriverMissing:
            continue  # the project uses no Redis: the variable may be another program's
        except Unreachable as error:
            file = ENVIRONMENT if name.isupper() else "treefold.toml"
            yield REDIS_UNREACHABLE.make_finding(file, f"{name}: {error}", f"# {error.advice}")
