"""A save of the sample's models is swapped: its hooks and extensions import none of them."""

from __future__ import annotations

from pathlib import Path

from treefold import Application, Settings
from treefold_http.reload import Reloaded, Reloader, RestartNeeded


def test_models_of_the_sample_are_swapped_and_its_hooks_restart(
    sample: Path, tmp_path: Path
) -> None:
    settings = Settings.load(sample, databases={"default": f"sqlite:///{tmp_path}/shop.sqlite3"})
    app = Application(sample, dev=True, settings=settings)
    app.boot()
    reloader = Reloader(app)
    for file in ("Models/catalogue.py", "Models/people.py", "Models/sales.py", "Services/shop.py"):
        path = sample / file
        path.write_text(f"{path.read_text()}# saved\n")
        assert isinstance(reloader.reload([file]), Reloaded)
    assert app.report.broken == ()
    path = sample / "Services/chat.py"
    path.write_text(f"{path.read_text()}# saved\n")
    assert isinstance(reloader.reload(["Services/chat.py"]), RestartNeeded)
