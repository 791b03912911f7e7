"""The settings of a project's own: the table `[app]`, typed by the model `app_settings`.

The model is a class of `settings.py`. Its one instance is made at boot and provided by type, so
that handlers and dependencies take it as a parameter. No message shows a value that may be secret.
"""

from __future__ import annotations

import datetime
import difflib
import enum
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from treefold_http._runtime.boot_report import SettingsError
from treefold_http._runtime.settings import APP_PREFIX, VariableText, format_toml_value
from treefold_http._types import tree
from treefold_http._types.decode import (
    build_model_decoder,
    build_pydantic_text_converter,
    is_body_model,
)
from treefold_http._types.parameters import InjectionError
from treefold_http._types.read import parse_annotation
from treefold_http._types.scalars import build_scalar_converter
from treefold_http._wire.errors import HTTPError
from treefold_logging import get_logger, is_sensitive

FILE, NAME = "settings.py", "app_settings"


@dataclass(frozen=True, eq=False)
class GivenSettings:
    """The factory of the instance; equal while model and values are the same, as in a reload."""

    model: Any
    values: Mapping[str, Any]
    instance: Any

    def __call__(self) -> Any:
        return self.instance

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GivenSettings) and (self.model, self.values) == (
            other.model,
            other.values,
        )

    def __hash__(self) -> int:
        return hash(self.model)


@dataclass(frozen=True, eq=False)
class RefusedSettings:
    """The factory in place of settings that do not fit: raises their error."""

    error: SettingsError

    async def __call__(self) -> Any:
        raise SettingsError(str(self.error))


def read_app_settings(model: Any, values: Mapping[str, Any]) -> GivenSettings:
    """Make the instance of a model from the table `[app]` and the variables `TREEFOLD_APP__*`.

    Args:
        model: the class; None without one.
        values: the table, texts of variables included.

    Raises:
        SettingsError: there is no such model, or a value does not fit it; each is named.
    """
    node = _read_settings_type(model)
    declared = (member for member in node.declared_members if member.is_input)
    members = {member.read_as or member.name: member for member in declared}
    document = _build_settings_document(members, values, extra=_allows_extra(model))
    if missing := [name for name, one in members.items() if one.required and name not in document]:
        name = missing[0]
        raise SettingsError(
            f"Setting app.{name} is missing; write {name} below [app] in treefold.toml, or set"
            f" {APP_PREFIX}{name.upper()}"
        )
    try:
        if (decoder := build_model_decoder(node)) is None:
            raise _make_wrong_model_error(model)
        instance = decoder.decode(json.dumps(document, allow_nan=False).encode(), document)
    except (InjectionError, TypeError) as error:
        raise SettingsError(f"`{NAME}` in {FILE} cannot be read: {error}") from None
    except HTTPError as error:
        reasons = _yield_error_messages(error, document, values, members)
        raise SettingsError("; ".join(reasons)) from None
    return GivenSettings(model, values, instance)


def refuse_settings_without_model(values: Mapping[str, Any]) -> None:
    """Refuse a table `[app]` that no model types; variables alone are named in the log.

    Raises:
        SettingsError: the table has a setting.
    """
    for name, value in values.items():
        if not isinstance(value, VariableText):
            raise SettingsError(
                f"Setting app.{name} has no model; write {NAME} = <a dataclass or model> in {FILE}"
            )
        get_logger().warning("variable %s means nothing: no model in %s", value.variable, FILE)


def _read_settings_type(model: Any) -> tree.Record:
    try:
        node = parse_annotation(model)
    except (InjectionError, NameError) as error:
        raise SettingsError(f"`{NAME}` in {FILE} cannot be read: {error}") from None
    if not isinstance(model, type) or not isinstance(node, tree.Record) or not is_body_model(node):
        raise _make_wrong_model_error(model)
    return node


def _make_wrong_model_error(model: Any) -> SettingsError:
    return SettingsError(
        f"`{NAME}` in {FILE} must be a dataclass, TypedDict, pydantic model or msgspec struct, got"
        f" {model!r}"
    )


def _allows_extra(model: Any) -> bool:
    return getattr(model, "model_config", {}).get("extra") == "allow"


def _build_settings_document(
    members: Mapping[str, tree.Member], values: Mapping[str, Any], *, extra: bool
) -> dict[str, Any]:
    """Return the table as a JSON document, with the texts of variables as values of their types."""
    document: dict[str, Any] = {}
    texts = {name: text for name, text in values.items() if isinstance(text, VariableText)}
    for name, value in values.items():
        if name in texts:
            continue
        if name not in members and not extra:
            near = difflib.get_close_matches(name, members, 1)
            known = f"known are {', '.join(members)}" if members else "the model has none"
            hint = f"did you mean {near[0]!r}?" if near else known
            raise SettingsError(f"Unknown setting app.{name}; {hint}")
        document[name] = _to_json_value(value, f"app.{name}")
    # a variable is written in capitals: TREEFOLD_APP__PAGESIZE may mean `pageSize`
    lowered = {name.lower(): name for name in members}
    for name, text in texts.items():
        if name in lowered:
            member = lowered[name]
            document[member] = _parse_variable_text(members[member].type, text, member)
        else:
            get_logger().warning("variable %s means nothing: no such setting", text.variable)
    return document


def _to_json_value(value: Any, place: str) -> Any:
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return {name: _to_json_value(one, f"{place}.{name}") for name, one in items}
    if isinstance(value, (list, tuple)):
        return [_to_json_value(one, place) for one in cast("list[Any]", value)]
    if isinstance(value, float) and not math.isfinite(value):
        raise SettingsError(f"Setting {place} must be a finite number, got {value!r}")
    return value


def _parse_variable_text(node: tree.TypeNode, text: VariableText, name: str) -> Any:
    """Return the JSON form of a text: a scalar, a list with commas, or JSON."""
    options = node.options if isinstance(node, tree.UnionType) else (node,)
    if any(isinstance(each, tree.ListType) for each in options) and text[:1] != "[":
        item = next(each.item for each in options if isinstance(each, tree.ListType))
        parts = [part.strip() for part in text.split(",") if part.strip()]
        return [_text_to_json_scalar(item, part, text.variable, name) for part in parts]
    converter = build_scalar_converter(node) or build_pydantic_text_converter(node)
    if converter is None and text[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            message = f"Setting app.{name} in {text.variable} must be JSON; correct it"
            raise SettingsError(message) from None
    return _text_to_json_scalar(node, str(text), text.variable, name)


def _text_to_json_scalar(node: tree.TypeNode, text: str, variable: str, name: str) -> Any:
    convert = build_scalar_converter(node) or build_pydantic_text_converter(node)
    if convert is None:
        return text
    try:
        value = convert(text)
    except ValueError as error:
        # a message of a boot ends in the log
        got = "" if _is_secret(name, node) else f", got {text!r}"
        words = str(error).removeprefix("should ")
        raise SettingsError(f"Setting app.{name} in {variable} must {words}{got}") from None
    # Every other type is text in JSON too, and its decoder reads it again.
    is_plain = isinstance(value, (bool, int, float)) and not isinstance(value, enum.Enum)
    return value if is_plain else text


def _yield_error_messages(
    error: HTTPError,
    document: Mapping[str, Any],
    values: Mapping[str, Any],
    members: Mapping[str, tree.Member],
) -> Iterator[str]:
    for entry in error.errors or ():
        steps = [str(step) for step in entry["loc"][1:]]
        if not steps:
            yield f"Settings [app] are not valid: {entry['msg']}"
            continue
        name = steps[0]
        place = ".".join(steps)
        text = values.get(name.lower())
        source = f" in {text.variable}" if isinstance(text, VariableText) else ""
        words = str(entry["msg"]).removeprefix(f"{steps[-1]} ")
        shown = ""
        if len(steps) == 1 and name in document and name in members:
            is_secret = _is_secret(name, members[name].type)
            shown = "" if is_secret else f", got {format_toml_value(document[name])}"
        yield f"Setting app.{place}{source} is not valid: {words}{shown}"


def _is_secret(name: str, node: tree.TypeNode) -> bool:
    return is_sensitive(name) or "Secret" in str(node.annotation)
