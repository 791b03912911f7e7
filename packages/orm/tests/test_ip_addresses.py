"""`GenericIPAddressField`: one text for each address, however it is spelled."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest

from treefold_orm import (
    FieldError,
    FieldValueError,
    Model,
    ModelError,
    Reverse,
    acreate_all,
    create_all,
    fields,
)

SPELLINGS: list[tuple[Any, str]] = [
    ("192.0.2.1", "192.0.2.1"),
    ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
    ("2001:db8:0000:0:1::1", "2001:db8::1:0:0:1"),
    ("::", "::"),
    ("::FFFF:c000:0201", "::ffff:192.0.2.1"),
    ("::ffff:192.0.2.1", "::ffff:192.0.2.1"),
    ("::192.0.2.1", "::c000:201"),
    ("FFFF:FFFF:FFFF:FFFF:FFFF:FFFF:FFFF:FFFF", ":".join(["ffff"] * 8)),
    (ipaddress.ip_address("192.0.2.1"), "192.0.2.1"),
    (ipaddress.ip_address("2001:db8::1"), "2001:db8::1"),
]
WRONG: list[tuple[Any, str]] = [
    *((text, "not an IP address") for text in ("", "localhost", "192.0.2", "192.0.2.256", " ::1")),
    *((text, "not an IP address") for text in ("192.0.2.01", "192.0.2.1/24", "1::2::3", "[::1]")),
    ("192.0.2.\N{ARABIC-INDIC DIGIT ONE}", "not an IP address"),
    ("fe80::1%eth0", "a zone, which names a device of one machine"),
    ("::1\0", "a NUL character"),
    (3221225985, "takes a str, not int"),
    (b"\xc0\x00\x02\x01", "takes a str, not bytes"),
    (ipaddress.ip_network("192.0.2.0/24"), "takes a str, not IPv4Network"),
]


@pytest.mark.parametrize(("given", "text"), SPELLINGS)
async def test_an_address_is_found_by_each_of_its_spellings(
    empty: Any, half: Any, given: Any, text: str
) -> None:
    class Peer(Model):
        address = fields.GenericIPAddressField(unique=True)

    await half.call(lambda: create_all(Peer), lambda: acreate_all(Peer))
    made = await half(Peer.objects).create(address=given)
    await half(Peer.objects).create(address="198.51.100.7")
    assert made.address == text
    peers = Peer.objects
    for query in (peers.filter(address=given), peers.filter(address__in=[given]), peers.all()):
        assert await half(query.exclude(address="198.51.100.7").values_list("address")).get() == (
            text,
        )
    assert await half(peers.exclude(address=given)).count() == 1
    assert (await half(peers).get(address=given)).pk == made.pk
    made.address = given
    await half(made).save()
    assert made.address == text
    assert await half(peers.filter(address=text)).update(address="203.0.113.9") == 1


@pytest.mark.parametrize(("given", "message"), WRONG)
async def test_what_is_no_address_is_neither_written_nor_looked_up(
    empty: Any, half: Any, given: Any, message: str
) -> None:
    class Peer(Model):
        address = fields.GenericIPAddressField(null=True)

    await half.call(lambda: create_all(Peer), lambda: acreate_all(Peer))
    with pytest.raises(FieldValueError, match=message):
        await half(Peer.objects).create(address=given)
    with pytest.raises(FieldValueError, match=message):
        await half(Peer.objects).bulk_create([Peer(address="::1"), Peer(address=given)])
    for name in ("address", "address__gt", "address__in"):
        value = [given] if name.endswith("in") else given
        with pytest.raises(FieldValueError, match=message):
            Peer.objects.filter(**{name: value})
    assert await half(Peer.objects).count() == 0


async def test_text_lookups_compare_the_text(empty: Any, half: Any) -> None:
    class Peer(Model):
        address = fields.GenericIPAddressField()

    await half.call(lambda: create_all(Peer), lambda: acreate_all(Peer))
    texts = ["10.0.0.2", "10.0.0.10", "192.0.2.1", "2001:db8::1"]
    await half(Peer.objects).bulk_create([Peer(address=text) for text in texts])
    ordered = Peer.objects.order_by("address").values_list("address", flat=True)
    for lookup, found in (
        ({"address__startswith": "10.0."}, ["10.0.0.10", "10.0.0.2"]),
        ({"address__istartswith": "2001:DB8:"}, ["2001:db8::1"]),
        ({"address__contains": ".0.2"}, ["10.0.0.2", "192.0.2.1"]),
        ({"address__endswith": "1"}, ["192.0.2.1", "2001:db8::1"]),
        ({"address__iexact": "2001:DB8::1"}, ["2001:db8::1"]),
        ({"address__range": ("10.0.0.1", "10.0.0.2")}, ["10.0.0.10", "10.0.0.2"]),
        ({"address__length": 8}, ["10.0.0.2"]),
    ):
        assert await half.rows(ordered.filter(**lookup)) == found, lookup
    with pytest.raises(FieldError, match="has no lookup 'starts'"):
        Peer.objects.filter(address__starts="10")


async def test_a_protocol_takes_its_own_addresses(empty: Any, half: Any) -> None:
    class Peer(Model):
        four = fields.GenericIPAddressField(protocol="IPv4", default="192.0.2.1")
        six = fields.GenericIPAddressField(protocol="IPv6", db_default="2001:DB8::0")
        mapped = fields.GenericIPAddressField(unpack_ipv4=True, default="::ffff:192.0.2.1")

    await half.call(lambda: create_all(Peer), lambda: acreate_all(Peer))
    await half(Peer.objects).create()
    found = await half(Peer.objects.values_list("four", "six", "mapped")).get()
    assert found == ("192.0.2.1", "2001:db8::", "192.0.2.1")
    assert await half(Peer.objects.filter(mapped="::ffff:c000:201")).count() == 1
    with pytest.raises(FieldValueError, match=r"Peer\.four: not an IPv4 address"):
        await half(Peer.objects).create(four="::1")
    with pytest.raises(FieldValueError, match=r"Peer\.six: not an IPv6 address"):
        await half(Peer.objects).create(six="192.0.2.1")
    with pytest.raises(FieldValueError, match="not an IPv4 address"):
        Peer.objects.filter(four="::ffff:192.0.2.1")


async def test_a_choice_is_chosen_by_each_of_its_spellings(empty: Any, half: Any) -> None:
    class Peer(Model):
        address = fields.GenericIPAddressField(choices=[("2001:DB8::1", "gate")])

    await half.call(lambda: create_all(Peer), lambda: acreate_all(Peer))
    made = await half(Peer.objects).create(address="2001:db8:0::1")
    assert made.get_address_display() == "gate"
    with pytest.raises(FieldValueError, match="not one of the choices"):
        await half(Peer.objects).create(address="2001:db8::2")


async def test_an_address_is_a_key(empty: Any, half: Any) -> None:
    class Peer(Model):
        address = fields.GenericIPAddressField(primary_key=True)
        visits: Reverse[Visit]

    class Visit(Model):
        peer = fields.ForeignKey(Peer, related_name="visits")

    models = (Peer, Visit)
    await half.call(lambda: create_all(*models), lambda: acreate_all(*models))
    peer = await half(Peer.objects).create(address="2001:DB8::1")
    await half(Visit.objects).create(peer=peer)
    visit = await half(Visit.objects).create(peer_id="2001:db8:0::1")
    assert visit.peer_id == peer.address == "2001:db8::1"
    loaded = await half(Peer.objects.prefetch_related("visits")).get(pk="2001:DB8:0::1")
    assert len(loaded.visits.all()) == 2
    assert [*await half(Peer.objects).in_bulk(["2001:Db8::1"])] == ["2001:db8::1"]
    assert await half(Visit.objects.filter(peer="2001:db8:0:0::1")).count() == 2


def test_options_that_do_not_fit_are_named() -> None:
    with pytest.raises(ModelError, match="protocol='ipv4' must be 'both', 'IPv4' or 'IPv6'"):
        fields.GenericIPAddressField(protocol="ipv4")  # type: ignore[call-overload]
    with pytest.raises(ModelError, match="unpack_ipv4 takes protocol='both', got protocol='IPv6'"):
        fields.GenericIPAddressField(protocol="IPv6", unpack_ipv4=True)
