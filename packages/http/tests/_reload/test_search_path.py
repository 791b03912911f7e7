"""Files that a restart waits for, as they do not compile."""

from pathlib import Path

import pytest

from treefold_http.reload import without_broken


@pytest.mark.parametrize(
    "source",
    [b"def (", b"x = '\0'", b"\xff", b"x = " + b"-" * 200_000 + b"1"],
    ids=["syntax", "NUL", "encoding", "nesting"],
)
def test_a_source_that_python_cannot_read_is_named(tmp_path: Path, source: bytes) -> None:
    (tmp_path / "a.py").write_bytes(source)
    (tmp_path / "b.py").write_text("x = 1")
    assert without_broken(tmp_path, {"a.py", "b.py", "gone.py"}) == ["b.py", "gone.py"]
