"""What a route answers, as facts: statuses, types, header fields and messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from treefold_contract import Answer, AnswerField, AnyType, Message, Scalar, TypeNode, UnionType
from treefold_http._description.answers import (
    PLAIN_MEDIA_TYPES,
    AnswerDescription,
    is_bodiless,
    list_success_answers,
    read_return_type,
)
from treefold_http._description.made_responses import EVENTS, JSON
from treefold_http._description.messages import MessageDescription, list_messages
from treefold_http._description.routes import RouteDescription
from treefold_http._facts.inputs import read_body_type
from treefold_http._facts.named_types import NamedTypes
from treefold_http._facts.type_reader import TypeReader
from treefold_http._responses.files import FileResponse
from treefold_http._responses.lines import NDJSON
from treefold_http._types.read import parse_annotation

PROBLEM = "problem"
UNKNOWN = "any"
"""The media type of an answer of which nothing is known."""
_SHORT = {JSON: "json", NDJSON: "ndjson", EVENTS: "events", "application/problem+json": PROBLEM}


class AnswerReader:
    """Reads the answers of one route.

    Args:
        described: the route.
        named: takes the named types.
    """

    def __init__(self, described: RouteDescription, named: NamedTypes) -> None:
        self._described = described
        self._reader = TypeReader(named, "response")
        self._named = named

    def list_answers(self) -> list[Answer]:
        """Return the answers: those of success, raised errors, and what the module declares.

        What the inputs and the credentials of a route imply is left out: 400, 401, 403, 413, 415
        and 422 follow from other facts.
        """
        found: dict[tuple[str, str], Answer] = {}
        held = self._described.contract.find_output_type(None)
        for answer in list_success_answers(self._described):
            self._add(found, self._build_success(answer, is_held=held is not None))
        for status in sorted(self._described.raised - self._list_implied()):
            self._add(found, Answer(str(status), PROBLEM))
        for status, declared in (self._described.module.responses or {}).items():
            replaced = self._build_declared(str(status), declared)
            if replaced is not None:
                known = [key for key in found if key[0] == str(status)]
                for key in known:
                    del found[key]
                self._add(found, replaced)
            elif not any(key[0] == str(status) for key in found):
                self._add(found, Answer(str(status), *_guess_media(str(status))))
        return list(found.values())

    def _list_implied(self) -> set[int]:
        """Return 401 for a route that requires credentials."""
        return {401} if any(not each.optional for each in self._described.security) else set()

    @staticmethod
    def _add(found: dict[tuple[str, str], Answer], answer: Answer) -> None:
        key = answer.status, answer.media
        known = found.get(key)
        if known is None or known.type == answer.type:
            found[key] = answer
            return
        options = [
            option
            for each in (known.type or AnyType(), answer.type or AnyType())
            for option in (each.options if isinstance(each, UnionType) else (each,))
        ]
        is_checked = known.is_checked and answer.is_checked
        node = UnionType(tuple(dict.fromkeys(options)))
        found[key] = Answer(answer.status, answer.media, node, is_checked)

    def _build_success(self, answer: AnswerDescription, *, is_held: bool) -> Answer:
        if answer.media_type == "" or is_bodiless(answer.status):
            return Answer(answer.status)
        if answer.media_type is None:
            return Answer(answer.status, UNKNOWN)
        media = _SHORT.get(answer.media_type, answer.media_type)
        node = answer.type
        if node is None and media == "events":
            node = self._described.contract.find_output_type(None)
            return Answer(answer.status, media, self._read(node), is_held or node is None)
        is_checked = is_held or node is None
        return Answer(answer.status, media, self._read(node), is_checked)

    def _read(self, node: Any) -> TypeNode | None:
        return None if node is None else self._reader.read(node)

    def _build_declared(self, status: str, declared: Any) -> Answer | None:
        """Return what `responses` declares of a status; None for words about it alone."""
        table = _read_table(declared)
        model: Any = table.get("model") if isinstance(declared, Mapping) else declared
        if isinstance(model, str):
            model = None
        media = table.get("media_type") or PLAIN_MEDIA_TYPES.get(model)
        if model is None and media is None:
            return None
        short = _SHORT.get(media or JSON, media or JSON)
        if model is None or model in PLAIN_MEDIA_TYPES:
            return Answer(status, short)
        return Answer(status, short, self._reader.read(parse_annotation(model)))

    def list_fields(self, answers: list[Answer]) -> list[AnswerField]:
        """Return the declared header fields of the answers."""
        found: dict[tuple[str, str], AnswerField] = {}
        for status, declared in (self._described.module.responses or {}).items():
            headers: Mapping[str, Any] = _read_table(declared).get("headers") or {}
            for name, said in headers.items():
                node = self._read_header(said)
                is_optional = _read_table(said).get("required") is False
                field = AnswerField(str(status), "header", name, node, is_optional)
                found[str(status), name.lower()] = field
        for status in dict.fromkeys(answer.status for answer in answers):
            for name, _ in self._described.contract.find_output_headers(status):
                field = AnswerField(status, "header", name, Scalar("str"), is_optional=True)
                found.setdefault((status, name.lower()), field)
        return list(found.values())

    def _read_header(self, said: Any) -> TypeNode:
        if isinstance(said, str | Mapping):  # words, or a Header Object of OpenAPI
            return Scalar("str")
        return self._reader.read(parse_annotation(said))

    def list_messages(self) -> list[Message]:
        """Return the messages of a socket."""
        return [
            Message("in" if each.side == "receive" else "out", each.kind, self._read_message(each))
            for each in list_messages(self._described)
        ]

    def _read_message(self, message: MessageDescription) -> TypeNode:
        if message.kind != "json":
            return Scalar("str" if message.kind == "text" else "bytes")
        if message.side == "send":
            nodes = [self._reader.read(each) for each in message.types]
        else:
            nodes = [read_body_type(each, self._named) for each in message.types]
        options = tuple(dict.fromkeys(nodes))
        if not options:
            return AnyType()
        return options[0] if len(options) == 1 else UnionType(options)


def _read_table(declared: Any) -> Mapping[str, Any]:
    """Return the table of a status in `responses`; an empty one for a type or a text."""
    return cast("Mapping[str, Any]", declared) if isinstance(declared, Mapping) else {}


def _guess_media(status: str) -> tuple[str]:
    """Return the media type of a status of which `responses` has words alone."""
    if is_bodiless(status):
        return ("",)
    return (PROBLEM if status[0] in "45" else UNKNOWN,)


def iter_offers(described: RouteDescription) -> Iterator[str]:
    """Yield what requests may ask for: files have an entity tag and ranges."""
    kind = getattr(read_return_type(described), "kind", None)
    if isinstance(kind, type) and issubclass(kind, FileResponse):
        yield from ("etag", "ranges")
