"""`python confine.py [OPTION ...] -- COMMAND` runs a command with less of the machine; Linux only.

    --no-network    a network of its own that is a loopback interface: no server answers
    --no-ipv6       the same, and the interface has no address of IPv6
    --taken PORTS   the same, and on these ports something else answers: 8000,5432,6379
    --processors N  as many processors
    --user NAME     another user, without the groups of this one; only root may ask for it

All of it is of the command and its children only. A user without rights gets the network where the
system lets users make namespaces (`kernel.apparmor_restrict_unprivileged_userns` is 0 on Ubuntu).
"""

import argparse
import ctypes
import fcntl
import os
import pwd
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000  # sched.h
GET_FLAGS, SET_FLAGS, UP = 0x8913, 0x8914, 0x1  # sockios.h, if.h
ANSWER = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def main() -> None:
    options = parse_options()
    if options.no_network or options.no_ipv6 or options.taken:
        enter_empty_network()
    if options.no_ipv6:
        Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").write_text("1")
    listeners = [listen(int(port)) for port in options.taken.split(",") if port]
    if options.processors:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.processors])
    if options.user:
        become_user(options.user)
    if not listeners:
        os.execvp(options.command[0], options.command)  # noqa: S606 - a program, not a shell
    for listener in listeners:
        threading.Thread(target=answer_all, args=(listener,), daemon=True).start()
    sys.exit(subprocess.run(options.command, check=False).returncode)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-network", action="store_true")
    parser.add_argument("--no-ipv6", action="store_true")
    parser.add_argument("--taken", default="")
    parser.add_argument("--processors", type=int)
    parser.add_argument("--user", default="")
    parser.add_argument("command", nargs="+")
    return parser.parse_args()


def enter_empty_network() -> None:
    """Leave the network of the machine; the own loopback interface is down until it is set up."""
    user, group = os.geteuid(), os.getegid()
    kinds = NEW_NETWORK if user == 0 else NEW_NETWORK | NEW_USER
    if ctypes.CDLL(None, use_errno=True).unshare(kinds):
        code = ctypes.get_errno()
        sys.exit(f"Cannot make a network namespace: {os.strerror(code)}; run this as root")
    if user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh22x", b"lo", 0)
        flags = struct.unpack("16sh22x", fcntl.ioctl(any_socket, GET_FLAGS, request))[1]
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh22x", b"lo", flags | UP))


def listen(port: int) -> socket.socket:
    return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)


def answer_all(listener: socket.socket) -> None:
    """Answer as a server of another protocol does."""
    while True:
        client, _ = listener.accept()
        with client:
            try:
                client.settimeout(5)
                client.recv(4096)
                client.sendall(ANSWER)
            except OSError:
                continue


def become_user(name: str) -> None:
    entry = pwd.getpwnam(name)
    os.setgroups([])
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)


if __name__ == "__main__":
    main()
