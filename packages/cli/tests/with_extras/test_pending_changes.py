"""What extensions call missing after a change, which `dev` sees with the extra `watch` only."""

import json
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

Start = Callable[..., Any]


def test_dev_says_it_again_after_a_change_that_matters(start: Start, behind: Path):
    server = start("dev", cwd=behind).started()
    server.wait_for("watching ")
    (behind / "wanted").write_text("one\ntwo\nthree\n")
    (behind / "Models").mkdir()
    (behind / "Models" / "shop.py").write_text("")
    server.wait_for("pending: step one is missing; step two is missing; step three is missing ")
    (behind / "done").write_text("one two three")
    (behind / "Models" / "shop.py").write_text("x = 1\n")
    server.wait_for("nothing is pending any more")
    assert server.stop() == 0


def test_dev_applies_what_a_change_brings(start: Start, behind: Path):
    server = start("dev", "--migrate", cwd=behind).started()
    server.wait_for("watching ")
    (behind / "wanted").write_text("one two three")
    (behind / "migrations").mkdir()
    (behind / "migrations" / "0003_three.py").write_text("")
    server.wait_for("made step three")
    (behind / "wanted").write_text("one two three bad")
    (behind / "migrations" / "0004_bad.py").write_text("")
    server.wait_for("not applied: step bad cannot be made")
    with urllib.request.urlopen(f"{server.url}/v1/health", timeout=60) as answer:
        assert "Health" in json.load(answer)["file"]
    assert server.stop() == 0
