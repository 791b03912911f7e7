"""Where the settings of a project come from: the file to change, and whether git keeps it.

Reads the settings files as they are written; what a setting means is decided in `_runtime`.
"""

from __future__ import annotations

import os
import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from treefold_http._runtime.dotenv import NAME as DOTENV
from treefold_http._runtime.settings import ADDRESS_VARIABLES, APP_PREFIX, Settings

ENVIRONMENT = "environment"
_FILES = (("treefold.toml", ()), ("pyproject.toml", ("tool", "treefold")))
_GIT_SECONDS = 5.0
"""Seconds that git may take to list a few files, which it does in milliseconds."""


class SettingSources:
    """The files and variables that give the settings of a project.

    Args:
        root: the application root.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def find_setting_file(self, name: str, table_key: str | None = None) -> str:
        """Return where a setting is given, or the settings file to write it into.

        Args:
            name: the setting, such as `secret_key` or `databases`.
            table_key: the name in its table, such as an alias.
        """
        variable = _build_env_variable_name(name, table_key)
        if variable in os.environ:
            return ENVIRONMENT
        if variable in self._settings_variables:
            return DOTENV
        for file, table in self._settings_tables_by_file.items():
            value = table.get(name)
            if table_key is not None and isinstance(value, Mapping):
                value = cast("Mapping[str, Any]", value).get(table_key)
            if value is not None:
                return file
        return next(iter(self._settings_tables_by_file), "treefold.toml")

    @cached_property
    def git_tracked_settings_files(self) -> frozenset[str]:
        """The settings files that are under version control."""
        names = [*(file for file, _ in _FILES), DOTENV]
        places = (self._root.resolve(), *self._root.resolve().parents)
        # without a repository no process is started; `.git` is a file in a worktree
        if not any((folder / ".git").exists() for folder in places):
            return frozenset()
        command = ["git", "ls-files", "-z", "--", *names]
        try:
            listed = subprocess.run(  # noqa: S603 - a fixed command with fixed names
                command, cwd=self._root, capture_output=True, timeout=_GIT_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return frozenset()
        return frozenset(listed.stdout.decode(errors="replace").split("\0")) & frozenset(names)

    @cached_property
    def _settings_variables(self) -> Mapping[str, str]:
        return Settings.read_variables(self._root)

    @cached_property
    def _settings_tables_by_file(self) -> Mapping[str, Mapping[str, Any]]:
        found: dict[str, Mapping[str, Any]] = {}
        for file, keys in _FILES:
            path = self._root / file
            if path.is_file():
                table = _read_nested_table(tomllib.loads(path.read_text(encoding="utf-8")), keys)
                if table or not keys:
                    found[file] = table
        return found


def _build_env_variable_name(name: str, table_key: str | None) -> str:
    if name in ADDRESS_VARIABLES:
        return ADDRESS_VARIABLES[name] if table_key == "default" else ""
    if name == "app":
        return f"{APP_PREFIX}{(table_key or '').upper()}"
    middle = f"{table_key.upper()}" if table_key is not None else ""
    return f"TREEFOLD_{name.upper()}" + (f"_{middle}" if middle else "")


def _read_nested_table(content: Mapping[str, Any], keys: Sequence[str]) -> Mapping[str, Any]:
    for key in keys:
        content = cast("Mapping[str, Any]", content.get(key, {}))
    return content
