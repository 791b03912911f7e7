"""A model in a file of a version: a version that inherits the file must not define it again."""

from pathlib import Path

from treefold import Application, TestClient
from treefold_orm._fields.meta import registry

NOTE = """
from treefold.orm import Model, fields

class Note(Model):
    text = fields.TextField(default="")

def handler():
    return Note.__module__
"""
FILES = {
    "treefold.toml": '[databases]\ndefault = "sqlite:///:memory:"\n',
    "Api/v1/Note/Get.py": NOTE,
    "Api/v1/Shelf/Services/models.py": NOTE.replace("Note", "Shelf"),
    "Api/v1/Shelf/Get.py": (
        "from .Services.models import Shelf\ndef handler(): return Shelf.__module__\n"
    ),
    "Api/v1/Book/Get.py": ("from Models.book import Book\ndef handler(): return Book.__module__\n"),
    "Models/book.py": NOTE.replace("Note", "Book"),
    "Api/v2/version.toml": 'inherits = "v1"',
    "Api/v3/version.toml": 'inherits = "v1"',
}


def write(root: Path) -> Path:
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def names(root: Path) -> list[str]:
    models = [meta.model for meta in registry if meta.space == f"{root.resolve()}/"]
    own = [one for one in models if one.__name__ in ("Note", "Shelf", "Book")]
    return sorted(f"{one.__module__}.{one.__name__}" for one in own)


def test_a_model_is_defined_once_and_breaks_the_files_that_define_it(tmp_path: Path) -> None:
    app = Application(write(tmp_path))
    with TestClient(app) as client:
        for version in ("v1", "v2", "v3"):
            assert client.get(f"/{version}/book").text == "Models.book"
        assert client.get("/v1/note").text == "Api.v1.Note.Get"
        assert client.get("/v2/note").status_code == 500
        assert client.get("/v3/shelf").status_code == 500
    assert names(tmp_path) == [
        "Api.v1.Note.Get.Note",
        "Api.v1.Shelf.Services.models.Shelf",
        "Models.book.Book",
    ]
    errors = {broken.place: broken.error for broken in app.report.broken}
    assert sorted(errors) == [
        "v2/Note/Get.py",
        "v2/Shelf/Get.py",
        "v3/Note/Get.py",
        "v3/Shelf/Get.py",
    ]
    assert errors["v2/Note/Get.py"] == (
        "NotInheritableError: Api/v1/Note/Get.py defines the model Note, which a process has once,"
        " so v2 cannot inherit it; define it in Models/"
    )
    assert "Api/v1/Shelf/Services/models.py defines the model Shelf" in errors["v3/Shelf/Get.py"]
