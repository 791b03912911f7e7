"""`treefold doctor`: middleware that does not boot, extras that are missing."""

import json
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

Project = Callable[..., Path]
Executable = Callable[..., "subprocess.CompletedProcess[str]"]
Told = tuple[str, str, str]

APP = "https://app.example.com"


@pytest.fixture
def told(project: Project, forked: Executable) -> Callable[..., list[Told]]:
    """What `doctor` finds in a project behind a list of middleware, about one topic."""

    def ask(entries: str, topic: str, **files: str) -> list[Told]:
        root = project("v1/Book/Get.py", "v1/Book/Post.py")
        (root / "treefold.toml").write_text('secret_key = "0123456789abcdef0123456789abcdef"\n')
        code = f"from treefold_http.middleware import *\nmiddlewares = [{entries}]\n"
        for name, text in {"Middleware/__init__.py": code, **files}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        done = forked("doctor", "--json", cwd=root)
        report = json.loads(done.stdout)
        found: list[dict[str, Any]] = report["findings"]
        failed = any(each["status"] == "fail" for each in found)
        assert (done.returncode, report["ok"], done.stderr) == (int(failed), not failed, "")
        return [(f["status"], f["text"], f["advice"]) for f in found if f["topic"] == topic]

    return ask


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (f"CORS(['{APP}/'])", f"An origin must be scheme and host, such as '{APP}', got '{APP}/'"),
        (
            f"CORS(['{APP}/shop'])",
            f"An origin must be scheme and host, such as '{APP}', got '{APP}/shop'",
        ),
        (
            "CORS(['app.example.com'])",
            f"An origin must be scheme and host, such as '{APP}', got 'app.example.com'",
        ),
        (
            "CORS(['*'], allow_credentials=True)",
            "CORS(allow_origins=['*']) cannot be combined with allow_credentials=True",
        ),
        ("CORS()", "CORS() must allow an origin; pass allow_origins="),
        ("Sessions(store='redis')", "Sessions(store='redis') needs an address"),
    ],
)
def test_what_refuses_to_boot_fails_with_its_reason(
    told: Callable[..., list[Told]], entries: str, message: str
):
    ((status, text, _),) = told(entries, "boot")
    assert status == "fail"
    assert text.startswith("Middleware/__init__.py: ")
    assert message in text


def test_boot_files_and_handlers_may_print_and_no_hook_runs(project: Project, forked: Executable):
    root = project()
    for name, text in {
        "Middleware/__init__.py": "middlewares = []\nprint('hello')\n",
        "hooks.py": "def start():\n    raise SystemExit(9)\n\n\non_startup = [start]\n",
        "Api/v1/Book/Get.py": "print('handler')\n\ndef handler(request):\n    return ''\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    done = forked("doctor", "--json", cwd=root)
    assert (done.returncode, done.stderr) == (0, "hello\nhandler\n")
    assert json.loads(done.stdout)["ok"]


@pytest.mark.parametrize(
    "use",
    [
        "from treefold_http.auth import jwt\n",
        "from treefold.auth import jwt as token\n",
        "from treefold import auth\nshow = auth.jwt\n",
        "import treefold.auth\nshow = treefold.auth.jwt\n",
        "import treefold_http.auth as who\n\n\ndef f():\n    return who.jwt('k')\n",
    ],
)
def test_a_missing_extra_that_is_used_fails(told: Callable[..., list[Told]], use: str):
    assert find_spec("jwt") is None, "this test needs an environment without the extra"
    found = told("", "extras", **{"Utils/tokens.py": use})
    line = use.count("\n", 0, use.rindex("jwt") if "def" not in use else use.index("who.jwt")) + 1
    assert (
        found.count(
            (
                "fail",
                f"jwt: not installed, and Utils/tokens.py:{line} uses jwt",
                "pip install 'treefold[jwt]'",
            )
        )
        == 1
    )


def test_passwords_without_argon2_are_told(told: Callable[..., list[Told]]):
    assert find_spec("argon2") is None, "this test needs an environment without the extra"
    use = "from treefold_http.auth import averify_password, login\n"
    found = told("", "extras", **{"Api/v1/Login/Services/check.py": use, "Services/no.py": "(\n"})
    assert (
        "warn",
        "argon2: not installed: averify_password of Api/v1/Login/Services/check.py:1 uses scrypt,"
        " and verifies no hash of argon2",
        "pip install 'treefold[argon2]'",
    ) in found


def test_extras_that_nothing_uses_are_no_fault(told: Callable[..., list[Told]]):
    use = "from treefold_http.auth import login\njwt = 'mentioned'\n"
    found = told("", "extras", **{"Services/x.py": use})
    assert {status for status, *_ in found} == {"ok"}
    assert ("ok", "jwt: not installed", "pip install 'treefold[jwt]'") in found
    assert not [text for _, text, _ in found if text.startswith("test: not installed")]
