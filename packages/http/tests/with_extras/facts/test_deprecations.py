"""Deprecations in the lock: of versions, and of routes that say more than their version."""

from __future__ import annotations

from collections.abc import Callable

Lock = Callable[..., str]

GET = "def handler() -> dict[str, int]: ...\n"


def read_lines(text: str) -> dict[str, list[str]]:
    blocks: dict[str, list[str]] = {}
    block: list[str] = []
    for line in filter(None, text.split("\n")):
        if line.startswith(" "):
            block.append(" ".join(line.split()))
        else:
            block = blocks[line] = []
    return blocks


def test_versions_have_their_days(lock: Lock) -> None:
    text = lock(
        {
            "Api/v1/version.toml": "deprecated = 2026-11-01\nsunset = 2027-06-30\n"
            'successor = "v2"\nlink = "/why"',
            "Api/v1/Book/Get.py": GET,
            "Api/v2/version.toml": 'status = "draft"',
            "Api/v2/Book/Get.py": GET,
            "Api/v3/Book/Get.py": GET,
        }
    )
    assert [line for line in text.split("\n") if line.startswith("version ")] == [
        "version v1 stable deprecated 2026-11-01 sunset 2027-06-30 successor v2",
        "version v2 draft",
        "version v3 stable",
    ]
    assert "deprecated" not in str(read_lines(text)["GET /v1/book"])


def test_routes_have_what_their_module_says_completed_by_the_version(lock: Lock) -> None:
    text = lock(
        {
            "Api/v1/version.toml": "sunset = 2027-06-30",
            "Api/v1/Book/Get.py": f"deprecated = '2026-12-01'\n{GET}",
            "Api/v1/Pen/Get.py": GET,
            "Api/v2/Book/Get.py": f"deprecated = True\n{GET}",
            "Api/v2/Pen/Get.py": "from treefold_http import Deprecation\n"
            f"deprecated = Deprecation('2026-12-01', successor='/v2/ink')\n{GET}",
        }
    )
    blocks = read_lines(text)
    assert "deprecated 2026-12-01 sunset 2027-06-30" in blocks["GET /v1/book"]
    assert "deprecated" not in str(blocks["GET /v1/pen"])
    assert "deprecated" in blocks["GET /v2/book"]
    assert "deprecated 2026-12-01 successor /v2/ink" in blocks["GET /v2/pen"]
