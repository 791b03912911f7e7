"""Commands of other packages that are plain functions: from a signature to options and arguments.

A package that adds commands need not know typer. A positional parameter is an argument, a
keyword-only one an option; the docstring is the help, and its section `Args:` that of each of
them. A parameter `app_dir` is the option that all commands share.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_type_hints

import typer

from treefold_cli._console.errors import MISUSE, CommandError
from treefold_cli._console.options import AppDir

_NUMBERS: Mapping[Any, str] = {int: "a whole number", float: "a number"}
_ENTRY = re.compile(r" {4}(\w+): (.*)")


def has_keyword_only_parameters(function: Callable[..., Any]) -> bool:
    """Return True if a function has keyword-only parameters, which typer knows nothing of."""
    parameters = inspect.signature(function).parameters.values()
    return any(one.kind is inspect.Parameter.KEYWORD_ONLY for one in parameters)


def adapt_for_typer(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same command with the annotations that typer reads."""
    text, about = _split_docstring(function)
    hints = get_type_hints(function)
    parameters = [
        one.replace(
            kind=inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=str(one.default) if hints[one.name] in _NUMBERS else one.default,
            annotation=_annotate_parameter(one, hints[one.name], about.get(one.name, "")),
        )
        for one in inspect.signature(function).parameters.values()
        if one.name != "app"  # handed over by `extra_commands`
    ]

    def call_with_parsed_values(**values: Any) -> Any:
        for name, value in values.items():
            values[name] = _parse_option_value(name, hints[name], value)
        given = inspect.signature(function).parameters.values()
        first = [one.name for one in given if one.kind is not inspect.Parameter.KEYWORD_ONLY]
        positional = [values.pop(name) for name in first]
        return function(*positional, **values)

    call_with_parsed_values.__doc__ = text
    call_with_parsed_values.__name__ = function.__name__
    call_with_parsed_values.__annotations__ = {one.name: one.annotation for one in parameters}
    # typer reads this one, and `inspect` knows it
    call_with_parsed_values.__signature__ = inspect.Signature(parameters)
    return call_with_parsed_values


def _parse_option_value(name: str, kind: Any, value: Any) -> Any:
    """Turn the text of a number into one; typer would import pydantic for that."""
    if kind == list[int]:
        return [_parse_option_value(name, int, one) for one in value]
    if kind not in _NUMBERS:
        return value
    try:
        return kind(value)
    except ValueError:
        message = f"{name.replace('_', '-')!r} must be {_NUMBERS[kind]}, got {value!r}"
        raise CommandError(message, code=MISUSE) from None


def _annotate_parameter(parameter: inspect.Parameter, kind: Any, about: str) -> Any:
    if parameter.name == "app_dir":
        return AppDir
    kind = str if kind in _NUMBERS else list[str] if kind == list[int] else kind
    shown = None if kind is bool else parameter.name.upper()
    if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
        return Annotated[kind, typer.Argument(help=about, metavar=shown, show_default=False)]
    name = f"--{parameter.name.replace('_', '-')}"
    return Annotated[kind, typer.Option(name, help=about, metavar=shown, show_default=False)]


def _split_docstring(function: Callable[..., Any]) -> tuple[str, Mapping[str, str]]:
    """The help of a command, and that of each of its parameters."""
    text = inspect.cleandoc(function.__doc__ or "")
    head, _, rest = text.partition("\nArgs:\n")
    about: dict[str, str] = {}
    name = ""
    for line in rest.splitlines():
        if not line.startswith(" "):
            if line:
                break
            continue
        if (entry := _ENTRY.fullmatch(line)) is not None:
            name = entry[1]
            about[name] = entry[2]
        elif name:
            about[name] += f" {line.strip()}"
    return head.strip(), about
