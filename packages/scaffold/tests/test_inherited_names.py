"""`Inherited` in sources: copies name the base, and a version that is called stays."""

from pathlib import Path

import pytest

from treefold_scaffold import (
    ScaffoldError,
    delete_version,
    flatten_version,
    plan_flatten,
    plan_version,
    write_version,
)
from treefold_scaffold._inherited_names import list_named_versions, name_base_version

OWN = (
    "# é\r\nfrom treefold import Inherited\r\n\r\n"
    "async def handler(before: Inherited[dict[str, int]]):\r\n    return await before()\r\n"
)


def put(root: Path, name: str, text: str) -> Path:
    file = root / "Api" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())
    return file


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put(tmp_path, "v1/Book/Get.py", "async def handler(): return {'a': 1}\n")
    put(tmp_path, "v2/version.toml", 'inherits = "v1"\n')
    put(tmp_path, "v2/Book/Get.py", OWN)
    return tmp_path


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("x: Inherited[A]", 'x: Inherited[A, "v1"]'),
        ("x: treefold.Inherited[ A ]", 'x: treefold.Inherited[ A, "v1" ]'),
        (
            "from treefold import Inherited as I\nx: I[A[B]]",
            'from treefold import Inherited as I\nx: I[A[B], "v1"]',
        ),
        ("x: Inherited[\n    A\n]", 'x: Inherited[\n    A, "v1"\n]'),
        ("é: Inherited[É]", 'é: Inherited[É, "v1"]'),
        ('x: Inherited[A, "v0"]', 'x: Inherited[A, "v0"]'),
        ('y = "Inherited[A]"', 'y = "Inherited[A]"'),
    ],
)
def test_a_version_is_written_in_where_there_is_none(source: str, wanted: str) -> None:
    assert name_base_version(source.encode(), "v1")[0].decode() == wanted


def test_the_encoding_of_a_file_stays() -> None:
    source = "# coding: latin-1\né = 1; x: Inherited[É]\n".encode("latin-1")
    assert name_base_version(source, "v1")[0] == source.replace(b"]", b', "v1"]')


def test_versions_that_are_named_are_found() -> None:
    source = b'a: Inherited[A, "v1"]\nb: t.Inherited[A, Literal["v2"]]\nc: Inherited[A]'
    assert list_named_versions(source) == {"v1", "v2"}


def test_flattening_names_the_base_and_changes_nothing_else(root: Path) -> None:
    flatten_version(root, plan_flatten(root, "2"))
    wanted = OWN.replace("[str, int]]", '[str, int], "v1"]')
    assert (root / "Api/v2/Book/Get.py").read_bytes().decode() == wanted
    assert not (root / "Api/v2/version.toml").exists()


def test_an_inherited_file_names_the_base_of_its_own_version(root: Path) -> None:
    put(root, "v3/version.toml", 'inherits = "v2"\n')
    flatten_version(root, plan_flatten(root, "3"))
    assert b'int], "v1"]' in (root / "Api/v3/Book/Get.py").read_bytes()
    assert (root / "Api/v2/Book/Get.py").read_bytes().decode() == OWN


def test_a_copy_names_the_base(root: Path) -> None:
    made = write_version(root, plan_version(root, "3"))
    assert b'int], "v1"]' in (made / "Book/Get.py").read_bytes()


def test_a_version_that_is_called_is_not_deleted(root: Path) -> None:
    flatten_version(root, plan_flatten(root, "2"))
    with pytest.raises(ScaffoldError, match=r"'Api/v2/Book/Get.py' calls its handler by Inherited"):
        delete_version(root, "1")
    assert (root / "Api/v1/Book/Get.py").exists()
    put(root, "v2/Book/Get.py", "async def handler(): ...\n")
    assert delete_version(root, "1") == ("v1", 1)
