"""Rules of answers: statuses, media types, bodies, headers, events and messages (78 to 107)."""

from __future__ import annotations

from collections.abc import Iterator

from treefold_contract._facts.facts import Answer, AnswerField
from treefold_contract._rules.route_change import Change, RoutePair, compare_words
from treefold_contract._types.nodes import Alphabet, AnyType, Reference, Side, TypeNode

STREAMS = ("json", "ndjson", "events", "file")
UNKNOWN = "any"
"""The media type of an answer of which nothing is known."""
OFFERS = {"etag": "conditional-dropped", "ranges": "ranges-dropped"}


def compare_answers(pair: RoutePair) -> Iterator[Change]:
    """Yield the changes of all that a client is answered."""
    before = {answer.status for answer in pair.old.answers}
    after = {answer.status for answer in pair.new.answers}
    yield from _compare_ranges(pair, before, after)
    yield from _compare_statuses(pair, _drop_covered(before, after), _drop_covered(after, before))
    for status in sorted(before & after):
        old = [answer for answer in pair.old.answers if answer.status == status]
        new = [answer for answer in pair.new.answers if answer.status == status]
        yield from _compare_status(pair, status, old, new)
    yield from _compare_fields(pair, before & after)
    lost = set(pair.old.offers) - set(pair.new.offers)
    for offer in sorted(lost & set(OFFERS)):
        yield pair.build_change(OFFERS[offer], "offers", offer, side="response")
    for offer in sorted(set(pair.new.offers) - set(pair.old.offers)):
        yield pair.build_change("offer-added", "offers", new=offer, side="response")


def _compare_ranges(pair: RoutePair, before: set[str], after: set[str]) -> Iterator[Change]:
    """Yield the changes between a range of statuses, of which nothing is known, and statuses."""
    for status in sorted(before - after):
        if is_range(status) and _list_covered(status, after):
            yield pair.build_change("type-declared", status, side="response")
    for status in sorted(after - before):
        if is_range(status) and _list_covered(status, before):
            yield pair.build_change("type-forgotten", status, side="response")


def _drop_covered(statuses: set[str], others: set[str]) -> set[str]:
    """Return the statuses without ranges that the other side names, and without those it covers."""
    named = {
        status for status in statuses - others if is_range(status) and _list_covered(status, others)
    }
    covered = {
        status
        for other in others - statuses
        if is_range(other)
        for status in _list_covered(other, statuses)
    }
    return statuses - named - covered


def is_range(status: str) -> bool:
    """Return True for a range of statuses such as `2XX`: one that the code does not say."""
    return status.endswith("XX")


def _list_covered(status: str, others: set[str]) -> list[str]:
    return [each for each in others if each[0] == status[0] and not is_range(each)]


def is_success(status: str) -> bool:
    """Return True for a status that is no error."""
    return status < "400"


def _compare_statuses(pair: RoutePair, before: set[str], after: set[str]) -> Iterator[Change]:
    removed = sorted(filter(is_success, before - after))
    added = sorted(filter(is_success, after - before))
    if len(removed) == len(added) == 1:
        yield pair.build_change("success-changed", added[0], removed[0], added[0], side="response")
    else:
        for status in removed:
            yield pair.build_change("success-removed", status, status, side="response")
        for status in added:
            yield pair.build_change("success-added", status, new=status, side="response")
    for status in sorted(before ^ after):
        if not is_success(status):
            rule = "error-added" if status in after else "error-removed"
            yield pair.build_change(rule, status, side="response")


def _compare_status(
    pair: RoutePair, status: str, old: list[Answer], new: list[Answer]
) -> Iterator[Change]:
    before = {answer.media: answer for answer in old}
    after = {answer.media: answer for answer in new}
    removed, added = before.keys() - after.keys(), after.keys() - before.keys()
    if UNKNOWN in removed | added:
        rule = "type-declared" if UNKNOWN in removed else "type-forgotten"
        yield pair.build_change(rule, status, side="response")
    elif removed or added:
        yield from _compare_media(pair, status, removed, added)
    for media in sorted(before.keys() & after.keys()):
        place = f"{status} {media}".strip()
        one, other = read_body(before[media]), read_body(after[media])
        yield from pair.compare_types(place, "response", "json", one, other)
    problems = ({each.problem for each in old} - {""}, {each.problem for each in new} - {""})
    for word in sorted(problems[1] - problems[0]):
        yield pair.build_change("problem-type-added", status, new=word, side="response")
    for word in sorted(problems[0] - problems[1]):
        yield pair.build_change("problem-type-removed", status, word, side="response")


def read_body(answer: Answer) -> TypeNode:
    """Return the type of a body; a problem without one of its own has the standard members."""
    if answer.type is not None:
        return answer.type
    return Reference("Problem") if answer.media == "problem" else AnyType()


def _compare_media(
    pair: RoutePair, status: str, removed: set[str], added: set[str]
) -> Iterator[Change]:
    if len(removed) == len(added) == 1:
        before, after = min(removed), min(added)
        if not is_success(status):
            yield pair.build_change("error-shape", status, before, after, side="response")
            return
        if before in STREAMS and after in STREAMS:
            yield pair.build_change("stream-kind", status, before, after, side="response")
            return
    for media in sorted(removed):
        yield pair.build_change("media-removed", status, media or "no body", side="response")
    for media in sorted(added):
        yield pair.build_change("media-added", status, new=media or "no body", side="response")


def field_key(each: AnswerField) -> tuple[str, str, str]:
    """Return what a field is matched by; names of headers have no case."""
    name = each.name.lower() if each.place == "header" else each.name
    return each.status, each.place, name


def _compare_fields(pair: RoutePair, statuses: set[str]) -> Iterator[Change]:
    before = {field_key(each): each for each in pair.old.fields if each.status in statuses}
    after = {field_key(each): each for each in pair.new.fields if each.status in statuses}
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        place = " ".join(key)
        kind = "event" if key[1] == "event" else "header"
        if old is None or new is None:
            rule = f"{kind}-added" if old is None else f"{kind}-removed"
            yield pair.build_change(rule, place, side="response")
            continue
        if old.is_optional != new.is_optional:
            rule = "header-optional" if new.is_optional else "header-required"
            yield pair.build_change(rule, place, side="response")
        alphabet: Alphabet = "json" if kind == "event" else "text"
        yield from pair.compare_types(place, "response", alphabet, old.type, new.type)


def compare_messages(pair: RoutePair) -> Iterator[Change]:
    """Yield the changes of a socket: messages, subprotocols and close codes (rows 102 to 107)."""
    before = {(each.direction, each.media): each for each in pair.old.messages}
    after = {(each.direction, each.media): each for each in pair.new.messages}
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        side: Side = "request" if key[0] == "in" else "response"
        place = " ".join(key)
        if old is None or new is None:
            rule = "message-added" if old is None else "message-removed"
            yield pair.build_change(rule, place, side=side)
            continue
        yield from pair.compare_types(place, side, "json", old.type, new.type)
    words = (pair.old.subprotocols, pair.new.subprotocols)
    rules = ("subprotocol-added", "subprotocol-removed")
    yield from compare_words(pair, "subprotocol", words, rules)
    codes = (map(str, pair.old.closes), map(str, pair.new.closes))
    yield from compare_words(pair, "close", codes, ("socket-close-added", "socket-close-removed"))
