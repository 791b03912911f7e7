"""Binary values as keys and in lists: `in`, prefetched relations, and `set` of related rows."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from orm_models import Everything

from treefold_orm import (
    F,
    FieldError,
    FieldValueError,
    Model,
    Reverse,
    acreate_all,
    create_all,
    fields,
)

BYTES = [b"", b"\0", b"a\0b", b"'\\x41'", bytes(range(256))]


def key(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


async def test_in_takes_bytes(db: Any, half: Any) -> None:
    await half(Everything.objects).bulk_create([Everything(blob=blob) for blob in [*BYTES, None]])
    for given in (BYTES[1:3], [bytearray(BYTES[1]), memoryview(BYTES[2])]):
        found = await half.rows(Everything.objects.filter(blob__in=given))
        assert sorted(row.blob for row in found) == sorted(map(bytes, given))
    assert await half(Everything.objects.filter(blob__in=BYTES)).count() == 5
    assert await half(Everything.objects.exclude(blob__in=BYTES[:2])).count() == 4
    assert await half(Everything.objects.filter(blob__in=[])).count() == 0
    inner = Everything.objects.filter(blob=BYTES[4]).values("blob")
    assert await half(Everything.objects.filter(blob__in=inner)).count() == 1
    annotated = Everything.objects.annotate(again=F("blob")).filter(again__in=BYTES[2:])
    assert await half(annotated).count() == 3


WRONG: list[tuple[Any, type[Exception], str]] = [
    (["text"], FieldValueError, "takes bytes, not str"),
    (b"ab", FieldError, "takes a list, not bytes"),
    (["\0", "\ud800"], FieldValueError, "takes bytes, not str"),
    ([10**30], FieldValueError, "takes bytes, not int"),
    (7, FieldError, "takes a list, not int"),
]


@pytest.mark.parametrize(("given", "kind", "message"), WRONG)
def test_in_refuses_what_are_no_bytes(given: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        Everything.objects.filter(blob__in=given)
    with pytest.raises(FieldError, match="has no lookup 'gt' for 'blob'"):
        Everything.objects.filter(blob__gt=b"a")


async def test_binary_keys_are_prefetched_and_set(empty: Any, half: Any) -> None:
    class Blob(Model):
        digest = fields.BinaryField(primary_key=True)
        parts: Reverse[Part]
        marks = fields.ManyToManyField("Mark", related_name="blobs")

    class Part(Model):
        digest = fields.BinaryField(primary_key=True)
        blob = fields.ForeignKey(Blob, null=True, related_name="parts", on_delete="SET_NULL")

    class Mark(Model):
        digest = fields.BinaryField(primary_key=True)

    models = (Blob, Part, Mark)
    await half.call(lambda: create_all(*models), lambda: acreate_all(*models))
    one, two = await half(Blob.objects).bulk_create([Blob(digest=key(name)) for name in "ab"])
    parts = await half(Part.objects).bulk_create(
        [Part(digest=key(name), blob=one) for name in "cde"]
    )
    marks = await half(Mark.objects).bulk_create([Mark(digest=key(name)) for name in "fg"])
    await half(two.marks).set(marks)
    await half(two.marks).set([marks[1].pk])
    await half(two.parts).set(parts[:2])
    found = await half.rows(Blob.objects.prefetch_related("parts", "marks").order_by("digest"))
    held = {blob.digest: (len(blob.parts.all()), len(blob.marks.all())) for blob in found}
    assert held == {one.digest: (1, 0), two.digest: (2, 1)}
    loaded = await half.rows(Part.objects.prefetch_related("blob"))
    assert {part.blob.digest for part in loaded} == {one.digest, two.digest}
    named = await half(Part.objects).in_bulk([parts[0].pk])
    assert [*named] == [parts[0].pk]
    assert await half(Part.objects.filter(blob__in=[two])).count() == 2
