"""The room of all forms together: shares, and who gives way (S-42, S-143)."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator

import pytest

from treefold_http import ServiceUnavailable
from treefold_http._bodies import space as rooms
from treefold_http._bodies.forms import FormBuilder
from treefold_http._bodies.part_head import PartHead
from treefold_http._bodies.space import AHEAD, WINDOW, FormSpace
from treefold_http._bodies.uploads import close_uploads
from treefold_http._wire.addresses import find_client_network
from treefold_http._wire.datastructures import Headers
from treefold_http._wire.limits import Limits

LIMITS = Limits(disk=1000, memory=1000, total=400, spool=300)


class Clock:
    """The clock of the module, moved by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(rooms, "monotonic", clock)
    return clock


@pytest.fixture(autouse=True)
def nothing_is_kept() -> Iterator[None]:
    yield
    gc.collect()  # a caught exception keeps the frame that holds the forms
    assert (rooms._disk.total, rooms._memory.total) == (0, 0)
    assert (rooms._disk.clients, rooms._memory.clients) == ({}, {})


def take(space: FormSpace, kind: str, size: int) -> None:
    asyncio.run(space.reserve_disk(size) if kind == "disk" else space.reserve_memory(size))


KINDS = pytest.mark.parametrize("kind", ["disk", "memory"])


@KINDS
def test_s143_all_forms_together_have_a_limit(clock: Clock, kind: str) -> None:
    forms = [FormSpace(limits=LIMITS) for _ in range(6)]
    for form in forms[:5]:
        take(form, kind, 200)
    with pytest.raises(ServiceUnavailable, match="Too many uploads at the same time"):
        take(forms[5], kind, 1)
    forms[0].close()
    take(forms[5], kind, 200)


@KINDS
def test_s143_one_client_has_half_and_leaves_the_rest_to_others(clock: Clock, kind: str) -> None:
    ann = [FormSpace("203.0.113.1", LIMITS) for _ in range(3)]
    take(ann[0], kind, 300)
    take(ann[1], kind, 200)
    with pytest.raises(ServiceUnavailable, match="Too many forms of this client"):
        take(ann[2], kind, 1)
    bob = FormSpace("203.0.113.2", LIMITS)
    take(bob, kind, 400)


@KINDS
def test_s143_a_form_that_its_route_allows_fits_the_share(clock: Clock, kind: str) -> None:
    large = FormSpace("203.0.113.1", Limits(disk=1000, memory=1000, total=900))
    take(large, kind, 900)


@KINDS
def test_s143_the_slowest_gives_way_to_a_faster_one(clock: Clock, kind: str) -> None:
    slow, slower, complete = (FormSpace(limits=LIMITS) for _ in range(3))
    take(slow, kind, 300)
    take(slower, kind, 300)
    take(complete, kind, 300)
    complete.is_complete = True
    clock.now += WINDOW
    take(slow, kind, 50)
    take(slower, kind, 1)
    clock.now += WINDOW - 1
    fast = FormSpace(limits=LIMITS)
    take(fast, kind, 200)
    assert [form.is_evicted for form in (slow, slower, complete)] == [False, True, False]
    with pytest.raises(ServiceUnavailable, match="arrived too slowly"):
        take(slower, kind, 1)


@KINDS
def test_s143_a_young_form_and_a_faster_one_stay(clock: Clock, kind: str) -> None:
    form = FormSpace(limits=LIMITS)
    take(form, kind, 1000)
    other = FormSpace(limits=LIMITS)
    with pytest.raises(ServiceUnavailable):
        take(other, kind, 10)
    clock.now += WINDOW
    trickle = FormSpace(limits=LIMITS)
    with pytest.raises(ServiceUnavailable):
        take(trickle, kind, 1)  # slower than the one in its way
    assert not form.is_evicted


def test_s143_an_evicted_form_forgets_its_bytes(clock: Clock) -> None:
    forgotten: list[str] = []

    async def forget() -> None:
        forgotten.append("all")

    form = FormSpace(limits=LIMITS)
    form.forget = forget
    take(form, "memory", 1000)
    clock.now += WINDOW * 100
    other = FormSpace(limits=LIMITS)
    take(other, "memory", 500)
    assert (forgotten, form.memory) == (["all"], 0)


def test_s143_a_form_reserves_at_most_as_much_again(clock: Clock) -> None:
    form, whole = FormSpace(limits=Limits(memory=4 * AHEAD, total=4 * AHEAD)), 4 * AHEAD
    arrived = 0
    for _ in range(whole // 100):
        assert form.try_reserve_memory(100)
        arrived += 100
        assert arrived <= form.memory <= min(2 * arrived, arrived + AHEAD)
    assert form.try_reserve_memory(whole - arrived)  # the last free byte
    assert form.memory == whole
    assert not form.try_reserve_memory(1)
    form.close()


def test_s143_what_is_reserved_ahead_is_lost_with_the_form(clock: Clock) -> None:
    form = FormSpace(limits=LIMITS)
    take(form, "memory", 300)
    take(form, "memory", 50)  # and 300 ahead
    clock.now += WINDOW * 100
    take(FormSpace(limits=LIMITS), "memory", 900)
    with pytest.raises(ServiceUnavailable, match="arrived too slowly"):
        form.try_reserve_memory(1)


def test_s143_small_files_go_to_disk_where_memory_is_full() -> None:
    async def use() -> tuple[int, int, bytes]:
        other, space = FormSpace(limits=LIMITS), FormSpace(limits=LIMITS)
        await other.reserve_memory(950)
        builder = FormBuilder(LIMITS, space)
        builder.add_and_count_unreserved_bytes(PartHead("file", "x.bin", "", Headers([])))
        assert builder.add_and_count_unreserved_bytes(b"x" * 40) == 0
        assert builder.add_and_count_unreserved_bytes(b"x" * 40) == 40
        await builder.reserve_or_spill(40)
        upload = builder.build_form().files["file"]
        used = space.disk, space.memory, await upload.read()
        await close_uploads([upload])
        assert (space.disk, space.memory) == (0, 0)
        return used

    assert asyncio.run(use()) == (80, 0, b"x" * 80)


def test_s143_a_form_that_is_collected_returns_its_room() -> None:
    take(FormSpace(limits=LIMITS), "memory", 1000)
    take(FormSpace(limits=LIMITS), "memory", 1000)


@pytest.mark.parametrize(
    ("client", "known"),
    [
        (("203.0.113.9", 0), "203.0.113.9"),
        (("10.0.0.9", 0), "10.0.0.9"),
        (("8.8.8.8", 4), "8.8.8.8"),
        (("2600::1:2", 4), "2600::/64"),
        (("127.0.0.1", 4), None),
        (("10.0.0.9", 4), None),
        (("testclient", 4), None),
        (("", 4), None),
        (None, None),
    ],
)
def test_s143_an_address_of_this_site_may_be_a_proxy(
    client: tuple[str, int] | None, known: str | None
) -> None:
    assert find_client_network({"type": "http", "client": client}) == known
