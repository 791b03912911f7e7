"""The versions of uvicorn on which the server is tested are those that its list of names gives."""

import tomllib
from pathlib import Path

from treefold_server._uvicorn_names import CHECKED


def test_the_server_is_tested_on_the_oldest_and_the_newest_checked_uvicorn(
    repository: Path,
) -> None:
    table = tomllib.loads((repository / "hatch.toml").read_text(encoding="utf-8"))
    server = table["envs"]["server"]
    pins = {
        name: pin["value"]
        for pin in server["overrides"]["matrix"]["uvicorn"]["extra-dependencies"]
        for name in pin["if"]
    }
    oldest, newest = CHECKED
    assert server["matrix"] == [{"uvicorn": ["oldest", "newest"]}]
    assert pins == {"oldest": f"uvicorn=={oldest}", "newest": f"uvicorn=={newest}"}
