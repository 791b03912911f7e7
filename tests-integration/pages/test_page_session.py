"""What a reader types is done with the servers of the tests, and shown with those of the page."""

from pathlib import Path

from page_blocks import read_blocks
from page_session import PageSession

PAGE = """
```console
$ echo postgresql://localhost/shop, 127.0.0.1:34595
postgresql://localhost/shop, 127.0.0.1:5432
$ echo redis://localhost:6379 redis://localhost
redis://127.0.0.1:6379 redis://127.0.0.1:6379
```

```console
$ echo redis://localhost
redis://127.0.0.1:6379
```
"""


def test_servers_of_other_ports_are_shown_as_those_of_the_page(tmp_path: Path) -> None:
    started: list[str] = []

    def start_redis() -> str:
        started.append(f"redis://127.0.0.1:3400{len(started)}")
        return started[-1]

    database = "postgresql://me@127.0.0.1:34595/treefold_1"
    session = PageSession(tmp_path, lambda: database, start_redis)
    session.terminal.environment["TERMINAL_PWD"] = str(tmp_path / "pwd")
    for block in read_blocks(PAGE):
        session.run("page.md", block)
    session.close()
    assert len(started) == 1  # one page has one Redis, from its first block to its last
