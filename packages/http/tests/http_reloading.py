"""A booted project that tests edit, with its reloader, and sources of such projects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from treefold_http import Application
from treefold_http.reload import Reloaded, Reloader, RestartNeeded

if TYPE_CHECKING:
    from conftest import Answer

X = "Api/v1/X/Get.py"
Y = "Api/v1/Y/Get.py"


def handler(expression: str, *lines: str) -> str:
    """Return the source of a handler that answers with a list, after other lines."""
    return "\n".join([*lines, f"def handler():\n    return [{expression}]\n"])


CHAIN = {
    X: handler("a.value()", "from Services import a"),
    Y: handler("1"),
    "Services/__init__.py": "",
    "Services/a.py": "from Services.b import n\ndef value(): return n\n",
    "Services/b.py": "n = 1\n",
    "Services/c.py": "n = 1\n",
}
"""A handler that imports a service through another one, and a handler without imports."""


def header(answer: Answer, name: str) -> str | None:
    """Return the first value of a field."""
    values = answer.fields(name)
    return values[0] if values else None


class Live:
    """A booted application with its files and its reloader."""

    def __init__(self, app: Application, ask: Callable[..., Answer]) -> None:
        self.app, self._ask = app, ask
        app.boot()
        self.reloader = Reloader(app)
        self.reloader.read_imports()

    def edit(self, files: Mapping[str, str | None]) -> Reloaded | RestartNeeded | None:
        """Write files, or delete those whose text is None; reload."""
        for name, text in files.items():
            file = self.app.root / name
            if text is None:
                file.unlink()
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(dedent(text), encoding="utf-8")
        return self.reloader.reload(files)

    def get(self, target: str = "/v1/x") -> Any:
        answer = self._ask(self.app, "GET", target)
        return answer.json() if answer.status == 200 else answer.status

    def answer(self, target: str = "/v1/x") -> Answer:
        return self._ask(self.app, "GET", target)


MakeLive = Callable[[dict[str, str]], Live]
"""The fixture `live`."""
