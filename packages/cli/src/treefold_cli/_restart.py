"""Starting the process again on the same port: the listening socket is handed on.

It is never closed in between, so a connection waits where it would be refused. Whether to start
again is decided elsewhere.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import NoReturn

_VARIABLE = "TREEFOLD_DEV_SOCKET"


def inherited() -> socket.socket | None:
    """Give the listening socket that the process before this one left, if there was one."""
    text = os.environ.pop(_VARIABLE, "")
    if not text.isdecimal():
        return None
    try:
        listener = socket.socket(fileno=int(text))
        listener.getsockname()
    except OSError:
        return None  # started by something else that has the variable
    listener.set_inheritable(False)
    return listener


def again(listener: socket.socket, *, environment: Mapping[str, str], folder: str) -> NoReturn:
    """Become the command that this process was started with, on the same socket.

    Args:
        listener: the listening socket.
        environment: the variables as they were at the start: what the project read into them from
            a file that has changed is not to be kept.
        folder: the working directory as it was at the start.
    """
    os.chdir(folder)
    sys.stdout.flush()
    sys.stderr.flush()
    arguments = [sys.executable, *sys.orig_argv[1:]]
    if os.name != "posix":  # there is no exec that keeps the terminal waiting
        listener.close()
        sys.exit(subprocess.call(arguments, env=dict(environment)))  # noqa: S603 - our own command
    listener.set_inheritable(True)
    handed = {**environment, _VARIABLE: str(listener.fileno())}
    os.execve(sys.executable, arguments, handed)  # noqa: S606 - our own command, no shell
