"""Rules of what a route takes: path, query, header, cookie, files, body and limits (rows 10 to 29).

Inputs are matched by their place and by any of their names. A path parameter is matched by its
position, so that another name for it changes generated clients alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from treefold_contract._facts.facts import Body, Input
from treefold_contract._rules.route_change import Change, RoutePair, compare_words
from treefold_contract._rules.rule_table import Verdict
from treefold_contract._types.nodes import Alphabet

FORMS = ("form", "multipart")
NO_LIMIT = math.inf
SIZES = ("body", "form", "file")


def compare_inputs(pair: RoutePair) -> Iterator[Change]:
    """Yield the changes of all that a request has."""
    yield from _compare_path(pair)
    yield from _compare_named(pair)
    yield from _compare_bodies(pair)
    yield from _compare_limits(pair)
    if pair.old.is_opaque != pair.new.is_opaque:
        words = ("opaque", "") if pair.old.is_opaque else ("", "opaque")
        yield pair.build_change("input-opaque", "", *words)


def _compare_path(pair: RoutePair) -> Iterator[Change]:
    for before, after in zip(pair.old.path, pair.new.path, strict=True):
        if not after.is_parameter:
            continue
        place = f"path {after.text}"
        yield from pair.compare_types(place, "request", "text", before.type, after.type)
        if before.text != after.text:
            yield pair.build_change("path-param-renamed", place, before.text, after.text)


def input_names(each: Input) -> set[str]:
    """Return the place and all names of an input; names of headers have no case."""
    names = (each.name, *each.aliases)
    return {f"{each.place} {name.lower() if each.place == 'header' else name}" for name in names}


def _compare_named(pair: RoutePair) -> Iterator[Change]:
    removed, added = list(pair.old.inputs), list(pair.new.inputs)
    for before in pair.old.inputs:
        match = next((each for each in added if input_names(each) & input_names(before)), None)
        if match is not None:
            removed.remove(before)
            added.remove(match)
            yield from _compare_input(pair, before, match)
    for before in list(removed):
        match = next((each for each in added if each.name.lower() == before.name.lower()), None)
        if match is not None:
            removed.remove(before)
            added.remove(match)
            yield _build_moved(pair, before, match)
    for each in removed:
        yield pair.build_change("param-removed", f"{each.place} {each.name}", each.name)
    for each in added:
        word = "required" if each.is_required else "optional"
        kind = "file-part" if each.place == "file" else "param"
        witness = f"a request without {each.place} {each.name}" if each.is_required else ""
        place = f"{each.place} {each.name}"
        yield pair.build_change(f"{kind}-added-{word}", place, new=each.name, witness=witness)


def _build_moved(pair: RoutePair, before: Input, after: Input) -> Change:
    place = f"{after.place} {after.name}"
    words = (f"{before.place} {before.name}", place)
    if before.place != after.place:
        return pair.build_change("param-moved", place, *words)
    verdict: Verdict = "breaking" if after.is_required else "warning"
    return pair.build_change("param-case", place, *words, verdict=verdict)


def _compare_input(pair: RoutePair, before: Input, after: Input) -> Iterator[Change]:
    place = f"{after.place} {after.name}"
    names = (input_names(before), input_names(after))
    yield from compare_words(pair, place, names, ("param-alias-added", "param-alias-removed"))
    if before.is_required != after.is_required:
        if after.is_required:
            witness = f"a request without {place}"
            yield pair.build_change(
                "param-required", place, "optional", "required", witness=witness
            )
        else:
            yield pair.build_change("param-optional", place, "required", "optional")
    elif before.default != after.default:
        words = (f"= {before.default}", f"= {after.default}")
        yield pair.build_change("param-default-changed", place, *words)
    yield from pair.compare_types(place, "request", "text", before.type, after.type)


def _compare_bodies(pair: RoutePair) -> Iterator[Change]:
    before = {body.media: body for body in pair.old.bodies}
    after = {body.media: body for body in pair.new.bodies}
    if before and not after:
        yield pair.build_change("body-removed", "body", ", ".join(before))
        return
    was_needed = bool(before) and not any(body.is_optional for body in before.values())
    is_needed = bool(after) and not any(body.is_optional for body in after.values())
    if is_needed and not was_needed:
        witness = "a request without a body"
        yield pair.build_change("body-required", "body", new=", ".join(after), witness=witness)
    elif after and not is_needed and (was_needed or not before):
        yield pair.build_change("body-optional", "body", new=", ".join(after))
    if before:
        rules = ("body-media-added", "body-media-removed")
        yield from compare_words(pair, "body", (before, after), rules)
    for media in filter(after.__contains__, before):
        yield from _compare_body(pair, before[media], after[media])


def _compare_body(pair: RoutePair, before: Body, after: Body) -> Iterator[Change]:
    place = f"body {after.media}"
    if before.is_lenient != after.is_lenient:
        rule = "body-media-unchecked" if after.is_lenient else "body-media-checked"
        yield pair.build_change(
            rule, place, "any Content-Type" if before.is_lenient else after.media
        )
    alphabet: Alphabet = "text" if after.media in FORMS else "json"
    yield from pair.compare_types(place, "request", alphabet, before.type, after.type)


def _compare_limits(pair: RoutePair) -> Iterator[Change]:
    before = {limit.name: limit.value for limit in pair.old.limits}
    after = {limit.name: limit.value for limit in pair.new.limits}
    for name in sorted(before.keys() | after.keys()):
        # no limit is the largest
        old, new = before.get(name, NO_LIMIT), after.get(name, NO_LIMIT)
        if old == new:
            continue
        if name in SIZES:
            rule = "max-body-lowered" if new < old else "max-body-raised"
        else:
            rule = f"{name}-lowered" if new < old else "limit-raised"
        words = ("none" if value == NO_LIMIT else str(value) for value in (old, new))
        yield pair.build_change(rule, f"limit {name}", *words)
