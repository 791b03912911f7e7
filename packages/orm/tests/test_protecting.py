"""`on_delete=PROTECT`: `delete()` raises `ProtectedError` with the rows that protect."""

from __future__ import annotations

import pickle
import uuid
from typing import Any, cast

import pytest

from treefold_orm import (
    CASCADE,
    PROTECT,
    ForeignKeyViolation,
    Model,
    ProtectedError,
    acreate_all,
    araw,
    create_all,
    fields,
    raw,
    record_queries,
    transaction,
)
from treefold_orm._operations.protecting import SHOWN


class Label(Model):
    """Rows that others protect."""

    name = fields.CharField(max_length=20)
    secret_token = fields.CharField(max_length=20, null=True)


class Artist(Model):
    """Deleted with its label."""

    label = fields.ForeignKey(Label, CASCADE, null=True, related_name="artists")
    name = fields.CharField(max_length=20)


class Album(Model):
    """Deleted with its artist; its label cannot be deleted."""

    artist = fields.ForeignKey(Artist, CASCADE, related_name="albums")
    owner = fields.ForeignKey(Label, PROTECT, null=True, related_name="+")


class Song(Model):
    """Keeps its album, though both are deleted with the artist."""

    artist = fields.ForeignKey(Artist, CASCADE, related_name="songs")
    album = fields.ForeignKey(Album, PROTECT, null=True, related_name="songs")


class Folder(Model):
    """A tree that is deleted as a whole, in which a document keeps its folder."""

    parent = fields.ForeignKey("self", CASCADE, null=True, related_name="children")
    drive = fields.ForeignKey("Drive", CASCADE, null=True, related_name="folders")


class Drive(Model):
    """Cascades form a circle with folders."""

    folder = fields.ForeignKey(Folder, CASCADE, null=True, related_name="drives")


class Document(Model):
    """Keeps its folder."""

    folder = fields.ForeignKey("Folder", PROTECT, related_name="documents")


class Twin(Model):
    """Keeps the row that it points to, of its own table."""

    code = fields.UUIDField(primary_key=True)
    other = fields.OneToOneField("self", PROTECT, null=True, related_name="+")


MUSIC = (Label, Artist, Album, Song)
TREE = (Folder, Drive, Document)


@pytest.fixture
def music(empty: Any) -> None:
    create_all(*MUSIC)


@pytest.fixture
def tree(empty: Any) -> None:
    create_all(*TREE)


async def made(half: Any) -> tuple[Any, Any, Any, Any]:
    label = await half(Label.objects).create(name="l", secret_token="hidden words")
    artist = await half(Artist.objects).create(name="a", label=label)
    album = await half(Album.objects).create(artist=artist)
    song = await half(Song.objects).create(artist=artist, album=album)
    return label, artist, album, song


async def test_a_protected_row_is_not_deleted(music: None, half: Any) -> None:
    _, _, album, song = await made(half)
    with pytest.raises(ProtectedError, match=r"Album cannot be deleted, got 1 row that") as raised:
        await half(album).delete()
    error = raised.value
    assert (error.protected_objects, error.count) == ((song,), 1)
    assert (error.model, error.fields) == ("Song", ("album",))
    assert isinstance(error, ForeignKeyViolation)
    await half(song).delete()
    assert await half(album).delete() == 1


async def test_rows_of_a_query_are_protected(music: None, half: Any) -> None:
    _, artist, album, _ = await made(half)
    free = await half(Album.objects).create(artist=artist)
    for query in (
        Album.objects.all(),
        Album.objects.filter(artist__name="a"),
        Album.objects.order_by("pk")[:1],
        Album.objects.filter(pk=album.pk).distinct(),
        artist.albums.all(),
    ):
        with pytest.raises(ProtectedError, match=r"\(Song.album: 1\)"):
            await half(query).delete()
    assert await half(Album.objects).count() == 2
    assert await half(Album.objects.order_by("-pk")[:1]).delete() == 1
    assert not await half(Album.objects.filter(pk=free.pk)).exists()
    assert await half(Album.objects.none()).delete() == 0


async def test_rows_that_would_be_deleted_along_protect(music: None, half: Any) -> None:
    label, artist, _, song = await made(half)
    for target in (artist, Artist.objects.filter(name="a"), label, Label.objects.all()):
        with pytest.raises(ProtectedError) as raised:
            await half(target).delete()
        assert raised.value.protected_objects == (song,)
    await half(Song.objects.filter(pk=song.pk)).update(album=None)
    assert await half(label).delete() == 1
    assert not await half(Song.objects).exists()


async def test_all_keys_that_protect_are_named(music: None, half: Any) -> None:
    label, _, album, song = await made(half)
    album.owner = label
    await half(album).save()
    with pytest.raises(ProtectedError, match="got 2 rows") as raised:
        await half(label).delete()
    assert set(raised.value.protected_objects) == {album, song}
    assert "Album.owner: 1" in str(raised.value)
    assert "Song.album: 1" in str(raised.value)
    assert "hidden" not in str(raised.value)


async def test_the_rows_of_an_error_are_bounded(music: None, half: Any) -> None:
    _, artist, album, _ = await made(half)
    await half(Song.objects).bulk_create([Song(artist=artist, album=album) for _ in range(30)])
    with pytest.raises(ProtectedError, match="got 31 rows") as raised:
        await half(album).delete()
    keys = [song.pk for song in raised.value.protected_objects]
    assert keys == sorted(keys)
    assert (len(keys), raised.value.count) == (SHOWN, 31)
    again = pickle.loads(pickle.dumps(raised.value))
    assert (str(again), again.count) == (str(raised.value), 31)
    assert again.protected_objects == raised.value.protected_objects


async def test_one_statement_looks_for_each_key(music: None, half: Any) -> None:
    _, artist, album, _ = await made(half)
    await half(Song.objects).delete()
    with record_queries() as recorded:
        assert await half(album).delete() == 1
    assert [event.sql.split()[0] for event in recorded.events] == ["SELECT", "DELETE"]
    with record_queries() as recorded:
        assert await half(artist).delete() == 1
    assert [event.sql.split()[0] for event in recorded.events] == ["SELECT", "DELETE"]
    with record_queries() as recorded:  # nothing protects songs
        await half(Song.objects).delete()
    assert len(recorded) == 1


async def test_a_refused_delete_leaves_the_transaction_open(music: None, half: Any) -> None:
    _, _, album, song = await made(half)

    def blocking() -> None:
        with transaction():
            with pytest.raises(ProtectedError):
                album.delete()
            Song.objects.filter(pk=song.pk).update(album=None)
            album.delete()

    async def awaited() -> None:
        async with transaction():
            with pytest.raises(ProtectedError):
                await album.adelete()
            await Song.objects.filter(pk=song.pk).aupdate(album=None)
            await album.adelete()

    await half.call(blocking, awaited)
    assert not await half(Album.objects).exists()


async def test_the_database_refuses_too(music: None, half: Any) -> None:
    _, _, album, _ = await made(half)
    sql = f"DELETE FROM album WHERE id = {int(album.pk)}"
    with pytest.raises(ForeignKeyViolation) as raised:
        await half.call(lambda: raw(cast("Any", sql)), lambda: araw(cast("Any", sql)))
    assert not isinstance(raised.value, ProtectedError)


async def test_trees_are_searched_to_their_leaves(tree: None, half: Any) -> None:
    top = folder = await half(Folder.objects).create()
    for _ in range(4):
        folder = await half(Folder.objects).create(parent=folder)
    other = await half(Folder.objects).create()
    kept = await half(Document.objects).create(folder=folder)
    with pytest.raises(ProtectedError) as raised:
        await half(top).delete()
    assert raised.value.protected_objects == (kept,)
    assert await half(other).delete() == 1
    await half(kept).delete()
    assert await half(top).delete() == 1
    assert not await half(Folder.objects).exists()


async def test_circles_of_rows_are_searched_once(tree: None, half: Any) -> None:
    one = await half(Folder.objects).create()
    drive = await half(Drive.objects).create(folder=one)
    one.drive = drive
    one.parent = one
    await half(one).save()
    low = await half(Folder.objects).create(drive=drive)
    kept = await half(Document.objects).create(folder=low)
    for target in (one, drive, Drive.objects.all(), Folder.objects.filter(pk=one.pk)):
        with pytest.raises(ProtectedError) as raised:
            await half(target).delete()
        assert raised.value.protected_objects == (kept,)
    await half(kept).delete()
    assert await half(drive).delete() == 1
    assert not await half(Folder.objects).exists()


async def test_rows_of_one_table_protect_each_other(empty: Any, half: Any) -> None:
    await half.call(lambda: create_all(Twin), lambda: _acreate(Twin))
    one = await half(Twin.objects).create(code=uuid.UUID(int=1))
    two = await half(Twin.objects).create(code=uuid.UUID(int=2), other=one)
    for target in (one, Twin.objects.all()):
        with pytest.raises(ProtectedError) as raised:
            await half(target).delete()
        assert raised.value.protected_objects == (two,)
    assert await half(two).delete() == 1
    assert await half(one).delete() == 1


async def _acreate(*models: type[Model]) -> None:
    await acreate_all(*models)


async def test_a_model_that_is_defined_later_protects(empty: Any, half: Any) -> None:
    class Shelf(Model):
        name = fields.CharField(max_length=9)

    async def define() -> Any:
        class Jar(Model):
            shelf = fields.ForeignKey(Shelf, PROTECT, related_name="jars")

        await half.call(lambda: create_all(Shelf, Jar), lambda: _acreate(Shelf, Jar))
        return Jar

    await define()
    jar = await define()  # as a reload does
    assert [key.meta for key in cast("Any", Shelf)._meta.pointers] == [jar._meta]
    shelf = await half(Shelf.objects).create(name="x")
    await half(jar.objects).create(shelf=shelf)
    with pytest.raises(ProtectedError):
        await half(shelf).delete()


@pytest.mark.parametrize("kind", [fields.ForeignKey, fields.OneToOneField])
def test_protect_is_a_name_and_plain_text(kind: Any) -> None:
    assert kind(Label, PROTECT).on_delete == kind(Label, on_delete="PROTECT").on_delete == "PROTECT"
    assert kind(Label, fields.PROTECT).database_action == "RESTRICT"


def test_wide_trees_are_searched(tree: None) -> None:
    top = Folder.objects.create()
    many = Folder.objects.bulk_create([Folder(parent=top) for _ in range(33_000)])
    low = Folder.objects.create(parent=many[-1])
    Document.objects.create(folder=low)
    with pytest.raises(ProtectedError):
        top.delete()
