"""`AGENTS.md` of a starter: each command on it exists, and those that answer do so at once."""

import os
import re
import shlex
from pathlib import Path

import pytest
from forked_commands import ForkServer

from treefold_cli._console import application
from treefold_scaffold import create_project

ANSWERS = ["routes --json", "why get /v1/health", "check --strict", "doctor", "test /v1/health -q"]
"""The commands that change nothing and are done at once."""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return create_project("shop", tmp_path_factory.mktemp("agents"), starter=True)


@pytest.fixture(scope="module")
def commands(shop: Path) -> list[str]:
    text = (shop / "AGENTS.md").read_text(encoding="utf-8")
    return [found[1] for found in re.finditer(r"`treefold ([^`]+)`", text)]


def test_every_command_on_it_exists(commands: list[str], fork_server: ForkServer, shop: Path):
    for command in commands:
        words = shlex.split(command)
        known = [
            name for name in application.COMMANDS if words[: len(name.split())] == name.split()
        ]
        name = known[0] if known else words[0]
        done = fork_server.run([*name.split(), "--help"], cwd=shop, env=dict(os.environ))
        assert (done.returncode, done.stderr) == (0, ""), command
        for option in (word for word in words if word.startswith("--")):
            assert option in done.stdout


def test_the_rules_name_the_commands_of_the_request(commands: list[str]):
    wanted = {"routes", "why", "check", "doctor", "test", "docs", "create", "contract", "client"}
    assert wanted <= {command.split()[0] for command in commands}


@pytest.mark.parametrize("command", ANSWERS)
def test_the_commands_that_answer_do_so(
    commands: list[str], fork_server: ForkServer, shop: Path, command: str
):
    assert command.removesuffix(" -q") in commands
    done = fork_server.run(shlex.split(command), cwd=shop, env=dict(os.environ))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_route_it_names_is_the_one_that_create_writes(fork_server: ForkServer, shop: Path):
    text = (shop / "AGENTS.md").read_text(encoding="utf-8")
    done = fork_server.run(["create", "order/[id]", "get"], cwd=shop, env=dict(os.environ))
    file, method, url = done.stdout.removeprefix("created: ").split()
    assert f"`{file}` is `{method} {url}`" in text
