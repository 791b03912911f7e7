"""The contract of an application: its lock, made of the facts of its routes.

Imported only where a lock is asked for; it needs the extra `contract`.
"""

try:
    from treefold_http._facts.call_tree import build_call_tree as build_call_tree
    from treefold_http._facts.project_lock import (
        LockBuilder as LockBuilder,
        ProjectLock as ProjectLock,
        UnreadableProject as UnreadableProject,
        build_project_lock as build_project_lock,
    )
except ModuleNotFoundError as error:
    if error.name != "treefold_contract":
        raise
    raise ModuleNotFoundError(
        'A lock needs treefold-contract: pip install "treefold-http[contract]"',
        name=error.name,
    ) from error

__all__ = [
    "LockBuilder",
    "ProjectLock",
    "UnreadableProject",
    "build_call_tree",
    "build_project_lock",
]
