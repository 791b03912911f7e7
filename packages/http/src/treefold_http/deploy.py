"""Checks of a deployment, for `treefold check --deploy` and `treefold serve`.

No request needs them: nothing else imports this module.
"""

from treefold_http._deploy.checks import SUBJECTS, check_deployment
from treefold_http._deploy.databases import UNREACHABLE as REDIS_UNREACHABLE
from treefold_http._deploy.finding import SEVERE, Finding, Kind

__all__ = ["REDIS_UNREACHABLE", "SEVERE", "SUBJECTS", "Finding", "Kind", "check_deployment"]
