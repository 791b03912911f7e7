"""Explain why a request is answered as it is: the walk through the trie, as data.

Runs on demand for a developer, never while serving a request. Everything is read from the table;
the command line and the development page format the result.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from treefold_router._classify import Endpoint, classify_entry
from treefold_router._layers import HiddenEntry
from treefold_router._naming import WEBSOCKET, is_version_name, method_of, parameter_name
from treefold_router._path import (
    MAX_SEGMENTS,
    PERCENT,
    decode_and_compact_segments,
    drop_empty_segments,
    find_defect,
)
from treefold_router._trie import TrieNode, insert_path, match_path
from treefold_router._types import Duplicate, Found, Route, Skipped

_NEAR = 3
"""Most similar routes that are listed."""

_FAR = 0.75
"""Sum of differences of the segments above which a route is not similar."""

_PLAIN = re.compile(r"[\w@+~-]+")
_WORD = re.compile(r"[a-z0-9]+")
_VALUE = re.compile(r"[0-9]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_OPT_OUT = "services"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One segment of a request path, and the place it led to.

    Attributes:
        segment: the segment, decoded.
        place: `static`, `dynamic`, or empty where nothing matched.
        parameter: the name of the parameter it fills, for a dynamic place.
        over: the name of the parameter that a static place won over, or empty.
        here: the segments that there would have been, where nothing matched.
    """

    segment: str
    place: str
    parameter: str = ""
    over: str = ""
    here: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Gone:
    """A route of a base version that the version of the request does not inherit.

    Attributes:
        file: its file below `Api/`.
        mark: the file below `Api/` that removes it.
    """

    file: str
    mark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a method and a path lead to a route, or to none.

    Attributes:
        method: the method, `WEBSOCKET` for a handshake.
        path: the path that was asked for, decoded.
        status: 200 where a route serves, else 404 or 405, 400 for a path no client may send, 204
            for OPTIONS where the setting `auto_options` answers. A reader that loads the file of
            the route sets 500 if that fails.
        fault: the defect of such a path, or the error of such a file; else empty.
        route: the route that serves.
        steps: the walk, up to the first segment that matched nothing.
        methods: the methods that serve at the path, if it exists.
        duplicates: other files below `Api/` for the method and URL of the route.
        shadowed: routes that a static place hid: it is final, though it leads nowhere.
        skipped: files that look as if they were meant to serve this, and why they do not.
        near: routes with a similar path.
        versions: routes of other versions that serve the same.
        unversioned: True if the path lacks a version.
        default_version: the version that the path was looked up in, if it lacks one.
        file: the file below `Api/` that would serve it; empty where none can.
        create: the argument of the command `create` for it; empty if that gives another URL.
        gone: the routes that would serve it, and the files that remove them from its version.
        unserved: the version of the path, if its `version.toml` has `serve = false`.
    """

    method: str
    path: str
    status: int
    fault: str = ""
    route: Route | None = None
    steps: tuple[Step, ...] = ()
    methods: tuple[str, ...] = ()
    duplicates: tuple[str, ...] = ()
    shadowed: tuple[Route, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    near: tuple[Route, ...] = ()
    versions: tuple[Route, ...] = ()
    unversioned: bool = False
    default_version: str = ""
    file: str = ""
    create: str = ""
    gone: tuple[Gone, ...] = ()
    unserved: str = ""


@dataclass(frozen=True, slots=True)
class Tree:
    """The data that an explanation is made from."""

    trie: TrieNode
    routes: Sequence[Route]
    skipped: Sequence[Skipped]
    versions: Sequence[str]
    latest: str | None
    duplicates: Sequence[Duplicate] = ()
    auto_options: bool = False
    hidden: Sequence[HiddenEntry] = ()
    unserved: Sequence[str] = ()


def explain_request(tree: Tree, method: str, raw_path: bytes) -> Explanation:
    """Walk through the trie and record the step at every segment.

    Args:
        tree: the table's data.
        method: one of `METHODS` or 'WEBSOCKET'.
        raw_path: the path as sent, percent-encoded.
    """
    split = raw_path.split(b"/")
    segments = drop_empty_segments(
        decode_and_compact_segments(split) if PERCENT in raw_path else split
    )
    texts = [segment.decode(errors="backslashreplace") for segment in segments]
    verb = None if method == WEBSOCKET else method
    answer = match_path(tree.trie, segments, verb)
    path = "/" + "/".join(texts)
    if isinstance(answer, Found):
        steps, _ = _walk_trie(tree.trie, segments)
        return Explanation(
            method=method,
            path=path,
            status=200,
            route=answer.route,
            steps=steps,
            duplicates=_list_other_files_of_route(tree.duplicates, answer.route),
        )
    if (fault := find_defect([b"", *(segments or [b""])])) is not None:
        return Explanation(method=method, path=path, status=400, fault=fault.reason)
    methods = () if answer is None else _list_methods(answer)
    steps, places = _walk_trie(tree.trie, segments)
    unversioned = not (texts and is_version_name(texts[0]))
    shadowed = _find_shadowed(places, segments, verb)
    versions = _find_in_other_versions(tree, segments, verb)
    others = (route for route in tree.routes if route not in (*shadowed, *versions))
    file, create = _propose_file_and_create_argument(
        texts, steps, method=method, latest=tree.latest
    )
    gone = _find_gone_routes(tree.hidden, segments, verb)
    return Explanation(
        method=method,
        path=path,
        status=_choose_unmatched_status(
            methods, answers_options=tree.auto_options and method == "OPTIONS"
        ),
        steps=steps,
        methods=methods,
        shadowed=shadowed,
        skipped=_find_skipped_files(tree.skipped, texts),
        near=() if methods else _find_near_routes(others, texts, method),
        versions=versions,
        unversioned=unversioned,
        file="" if gone else file,
        create="" if gone else create,
        gone=gone,
        unserved=next((text for text in texts[:1] if text in tree.unserved), ""),
    )


def _walk_trie(
    root: TrieNode, segments: Sequence[bytes]
) -> tuple[tuple[Step, ...], list[TrieNode]]:
    node = root
    steps: list[Step] = []
    places = [root]
    for segment in segments:
        text = segment.decode(errors="backslashreplace")
        if (static := node.static.get(segment)) is not None:
            over = node.dynamic.parameter if node.dynamic else ""
            steps.append(Step(segment=text, place="static", over=over))
            node = static
        elif node.dynamic is not None and segment not in (b".", b".."):
            node = node.dynamic
            steps.append(Step(segment=text, place="dynamic", parameter=node.parameter))
        else:
            here = tuple(sorted(key.decode() for key in node.static))
            steps.append(Step(segment=text, place="", here=here))
            break
        places.append(node)
    return tuple(steps), places


def _list_other_files_of_route(duplicates: Iterable[Duplicate], route: Route) -> tuple[str, ...]:
    files = (duplicate.files for duplicate in duplicates if route.file in duplicate.files)
    return tuple(file for file in next(files, ()) if file != route.file)


def _choose_unmatched_status(methods: Sequence[str], *, answers_options: bool) -> int:
    if not methods:
        return 404
    return 204 if answers_options else 405


def _list_methods(node: TrieNode) -> tuple[str, ...]:
    return tuple(sorted(WEBSOCKET if verb is None else verb for verb in node.verbs))


def _find_shadowed(
    places: Sequence[TrieNode], segments: Sequence[bytes], verb: str | None
) -> tuple[Route, ...]:
    """Find the routes that would match if a static place were not final (routing rule 5)."""
    found: list[Route] = []
    for depth, node in enumerate(places[: len(segments)]):
        if node.dynamic is None or segments[depth] not in node.static:
            continue
        answer = match_path(node.dynamic, list(segments[depth + 1 :]), verb)
        if isinstance(answer, Found):
            found.append(answer.route)
    return tuple(found)


def _find_skipped_files(skipped: Iterable[Skipped], texts: Sequence[str]) -> tuple[Skipped, ...]:
    wanted = _normalise_segments(texts)
    paths = ((item, item.file.split("/")[:-1]) for item in skipped)
    return tuple(item for item, path in paths if _normalise_segments(path) == wanted)


def _find_gone_routes(
    hidden: Iterable[HiddenEntry], segments: Sequence[bytes], verb: str | None
) -> tuple[Gone, ...]:
    """Find the routes that would match if no mark had removed them from the version."""
    found: list[Gone] = []
    for one in hidden:
        endpoint = classify_entry(one.entry)
        if not isinstance(endpoint, Endpoint):
            continue
        root = TrieNode()
        node, template, parameters = insert_path(root, endpoint.folders)
        method = None if endpoint.method == WEBSOCKET else endpoint.method
        route = Route(endpoint.method, endpoint.folders[0], template, endpoint.file, parameters)
        node.register_outcome(method, Found(route, {}))
        if isinstance(match_path(root, segments, verb), Found):
            found.append(Gone(endpoint.file, one.mark))
    return tuple(found)


def _normalise_segments(names: Iterable[str]) -> list[str]:
    """Normalise a path for comparison: lower case, without version and opt-out folder."""
    lowered = (name.lower() for name in names)
    return [
        "{}" if parameter_name(name) or _VALUE.fullmatch(name) else name
        for name in lowered
        if name != _OPT_OUT and not re.fullmatch(r"v[0-9.]+.*", name)
    ]


def _find_near_routes(
    routes: Iterable[Route], texts: Sequence[str], method: str
) -> tuple[Route, ...]:
    scored = [
        (
            _compute_path_distance(route.template.split("/")[1:], texts),
            route.method != method,
            index,
            route,
        )
        for index, route in enumerate(routes)
    ]
    close = sorted(entry[:3] for entry in scored if entry[0] <= _FAR)
    return tuple(scored[index][3] for _, _, index in close[:_NEAR])


def _compute_path_distance(template: Sequence[str], texts: Sequence[str]) -> float:
    """Return the sum of differences of the segments; a parameter is similar to every segment."""
    if len(template) != len(texts):
        if abs(len(template) - len(texts)) > 1:
            return 1.0
        return _compute_distance_with_one_gap(template, texts)
    first, *rest = template
    if first != texts[0] and is_version_name(texts[0]):
        return 1.0  # the same path of another version is listed separately
    return _compute_segment_distance(first, texts[0]) + sum(
        map(_compute_segment_distance, rest, texts[1:])
    )


def _compute_distance_with_one_gap(template: Sequence[str], texts: Sequence[str]) -> float:
    """Compare a path with one that has a segment more or less; a word of both is needed."""
    longer, shorter = sorted((template, texts), key=len, reverse=True)
    for gap in range(len(longer)):
        pairs = [*zip((*longer[:gap], *longer[gap + 1 :]), shorter, strict=True)]
        same = [one for one, other in pairs if one == other and not is_version_name(one)]
        if same and all("{" in (one[:1], other[:1]) or one == other for one, other in pairs):
            return 0.5
    return 1.0


def _compute_segment_distance(segment: str, text: str) -> float:
    if segment == text:
        return 0.0
    if segment.startswith("{"):
        return 0.1
    if segment == text.lower():
        return 0.05
    import difflib  # takes 6 ms; other users of the table do not need it

    ratio = difflib.SequenceMatcher(None, segment, text).ratio()
    return 1.0 - ratio if ratio >= 0.5 else 1.0


def _find_in_other_versions(
    tree: Tree, segments: Sequence[bytes], verb: str | None
) -> tuple[Route, ...]:
    first = segments[0].decode(errors="replace") if segments else ""
    rest = segments[1:] if is_version_name(first) else segments
    others = (version for version in tree.versions if version != first)
    answers = (match_path(tree.trie, [name.encode(), *rest], verb) for name in others)
    return tuple(answer.route for answer in answers if isinstance(answer, Found))


def _propose_file_and_create_argument(
    texts: Sequence[str], steps: Sequence[Step], *, method: str, latest: str | None
) -> tuple[str, str]:
    """Return the file that would serve a path, and the argument of `create` for it."""
    if not texts or len(texts) >= MAX_SEGMENTS or method_of(method) != method:
        return "", ""
    placed = {index: step for index, step in enumerate(steps) if step.place}
    names = [_propose_folder_name(text, placed.get(index)) for index, text in enumerate(texts)]
    if not is_version_name(names[0]):
        names.insert(0, latest or "v1")
    plain = [name for name in names if parameter_name(name) is None]
    if not all(name == name.lower() and _PLAIN.fullmatch(name) for name in plain):
        return "", ""  # no folder gives such a segment, or not everywhere
    stem = "Socket" if method == WEBSOCKET else method.capitalize()
    if "services" in plain[1:] or not all(map(_WORD.fullmatch, plain)):
        return "/".join((*names, f"{stem}.py")), ""
    folders = [name if parameter_name(name) else name.capitalize() for name in names[1:]]
    verb = "socket" if method == WEBSOCKET else method.lower()
    return "/".join((names[0], *folders, f"{stem}.py")), f"{'/'.join(names)} {verb}"


def _propose_folder_name(text: str, step: Step | None) -> str:
    if step is not None:
        return f"[{step.parameter}]" if step.parameter else text
    return "[id]" if _VALUE.fullmatch(text.lower()) else text
