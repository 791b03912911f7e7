"""Restart of the process on the same port: the new process inherits the listening socket.

The socket stays open in between, so that new connections wait instead of being refused. The
decision to restart is made elsewhere.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import NoReturn

_VARIABLE = "TREEFOLD_DEV_SOCKET"


def open_inherited_listener() -> socket.socket | None:
    """Return the listening socket inherited from the previous process, or None."""
    text = os.environ.pop(_VARIABLE, "")
    if not text.isdecimal():
        return None
    try:
        listener = socket.socket(fileno=int(text))
        listener.getsockname()
    except OSError:
        return None  # the variable comes from an unrelated process
    listener.set_inheritable(False)
    return listener


def restart_process(
    listener: socket.socket, *, environment: Mapping[str, str], folder: str
) -> NoReturn:
    """Replace this process by a new run of its command on the same socket.

    Args:
        listener: the listening socket.
        environment: the variables as they were at the start, without those that the project has
            read from a file, which may have changed.
        folder: the working directory as it was at the start.
    """
    os.chdir(folder)
    sys.stdout.flush()
    sys.stderr.flush()
    arguments = [sys.executable, *sys.orig_argv[1:]]
    if os.name != "posix":  # without exec, the terminal would not wait for the new process
        listener.close()
        sys.exit(subprocess.call(arguments, env=dict(environment)))  # noqa: S603 - our own command
    listener.set_inheritable(True)
    handed = {**environment, _VARIABLE: str(listener.fileno())}
    os.execve(sys.executable, arguments, handed)  # noqa: S606 - our own command, no shell
