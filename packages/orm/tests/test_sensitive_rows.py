"""Rows with secrets: what the package asks by itself is not refused like a caller's names."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from orm_halves import Handle, in_half

from treefold_orm import CASCADE, F, FieldError, Model, Prefetch, acreate_all, create_all, fields
from treefold_orm.testing import sandbox


class Token(Model):
    """A key that is a secret, and another secret."""

    secret = fields.CharField(max_length=20, primary_key=True)
    pin = fields.CharField(max_length=4, null=True)
    n = fields.IntegerField(default=0)


class Device(Model):
    """Points to secrets, by names that sound like them."""

    name = fields.CharField(max_length=20)
    token = fields.ForeignKey(Token, CASCADE, related_name="devices", null=True)
    tokens = fields.ManyToManyField(Token, related_name="holders")


MODELS = (Token, Device)


@pytest.fixture
def tables(db: Any) -> Iterator[None]:
    with sandbox():
        yield


async def made(half: Any) -> tuple[Any, Any]:
    """A token, and a device that has it."""
    await half.call(lambda: create_all(*MODELS), lambda: acreate_all(*MODELS))
    token = await half(Token.objects).create(secret="hunter2", pin="1234")
    device = await half(Device.objects).create(name="phone", token=token)
    await half(device.tokens).add(token)
    return token, device


async def test_a_row_with_a_secret_key_is_written_and_read(tables: None, half: Any) -> None:
    token, _ = await made(half)
    token.n = F("n") + 1
    await half(token).save()
    token.n = F("n") + 1
    assert await half(Token.objects).bulk_update([token], ["n"]) == 1
    await half(token).refresh_from_db()
    assert token.n == 2
    assert await half(Token.objects).contains(token)
    token.secret = "hunter3"
    await half(token).save(force_insert=True)
    assert await half(Token.objects).count() == 2
    assert await half(token).delete() == 1


async def test_rows_with_a_secret_key_have_an_order(tables: None, half: Any) -> None:
    first, _ = await made(half)
    last = await half(Token.objects).create(secret="zebra")
    assert await half(Token.objects).first() == first
    assert await half(Token.objects).last() == last
    assert await half.rows(Token.objects.reverse()) == [last, first]
    assert await half(Token.objects).in_bulk(["zebra"]) == {"zebra": last}
    assert set(await half(Token.objects).in_bulk()) == {"hunter2", "zebra"}


async def test_secret_columns_are_loaded_later(tables: None, half: Any) -> None:
    await made(half)
    lean, twin = [await half(Token.objects.only("n")).get() for _ in range(2)]
    await half(lean).load("pin")
    assert lean.pin == "1234"
    twin.pk = "hunter3"
    await half(twin).save(force_insert=True)
    assert (await half(Token.objects).get(Token.secret == "hunter3")).pin == "1234"
    await half(twin).refresh_from_db(fields=["pin"])
    for other in (pickle.loads(pickle.dumps(lean)), copy.copy(lean)):
        assert other.pin == "1234"

    def lazily() -> list[str | None]:
        return [token.pin for token in Token.objects.only("n")]

    async def each() -> list[str | None]:
        return [(await token.aload("pin")).pin async for token in Token.objects.only("n")]

    assert await half.call(lazily, each) == ["1234", "1234"]


async def test_relations_by_secret_names_are_followed(tables: None, half: Any) -> None:
    token, device = await made(half)

    async def body(h: Handle) -> None:
        assert await h.rows(token.devices.all()) == [device]
        assert await h.rows(token.holders.all()) == [device]
        assert await h.rows(device.tokens.all()) == [token]
        await h(token.devices).remove(device)
        await h(token.devices).set([device])
        await h(device.tokens).set([token], clear=True)
        (found,) = await h.rows(Device.objects.prefetch_related("token", "tokens"))
        assert (found.token, list(found.tokens.all())) == (token, [token])
        paths = ("devices__tokens", Prefetch("holders", to_attr="held"))
        (again,) = await h.rows(Token.objects.prefetch_related(*paths))
        assert [list(d.tokens.all()) for d in again.devices.all()] == [[token]]
        assert again.held == [device]
        alone = await h(Device.objects).get()
        await h(alone).load("token", "tokens")
        assert alone.token == token

    await in_half(half, body)


def test_a_caller_is_still_refused() -> None:
    with pytest.raises(FieldError, match="leads to a sensitive field"):
        Token.objects.filter(pk="hunter2")
    with pytest.raises(FieldError, match="leads to a sensitive field"):
        Device.objects.filter(token="hunter2")
