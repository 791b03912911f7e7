"""Text fields: Char, Text, Slug, Email, URL.

Text that one of the databases cannot keep (NUL, lone surrogates) is refused on both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar, Unpack, overload

from treefold_orm._base.errors import FieldValueError, ModelError
from treefold_orm._fields.base import Field, NotNull, Nullable, T

_SLUG = re.compile(r"[A-Za-z0-9_-]+")
_LOCAL = re.compile(r"[^\s@<>()\[\],;:\\\"]+")
# 253 characters in all and 63 in a label: RFC 1035, section 2.3.4
_HOST = re.compile(
    r"(?=.{1,253}\Z)(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.)+[^\W\d_][\w-]{0,61}[^\W_]|localhost"
)


class TextField(Field[T]):
    """Text of any length, or of at most `max_length` characters."""

    types: ClassVar[dict[str, str]] = {"sqlite": "TEXT", "postgres": "text"}
    internal = "text"
    has_form: ClassVar[bool] = False  # whether `check_text` looks at more than the length

    @overload
    def __init__(
        self: TextField[str], *, max_length: int | None = None, **options: Unpack[NotNull]
    ) -> None: ...
    @overload
    def __init__(
        self: TextField[str | None], *, max_length: int | None = None, **options: Unpack[Nullable]
    ) -> None: ...
    def __init__(self, *, max_length: int | None = None, **options: Any) -> None:
        self._init_text(max_length, options)

    def _init_text(self, max_length: int | None, options: Any) -> None:
        self._init_field(options)
        if max_length is not None and max_length < 1:
            raise ModelError(f"max_length={max_length!r} leaves no room for text")
        self.max_length = max_length

    def coerce(self, value: Any) -> str:
        if value.__class__ is not str:
            if not isinstance(value, str):
                raise self.build_value_error(f"takes a str, not {type(value).__name__}")
            # str(value) would ask the subclass, which may say something else than it holds
            value = str.__str__(value)
        if "\0" in value:
            raise self.build_value_error("contains a NUL character")
        # only encoding finds a lone surrogate, and most text is spared it
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise self.build_value_error("contains a lone surrogate") from None
        return value

    def clean(self, value: Any) -> str | None:
        if not self.plain or value is None:
            return super().clean(value)
        text = self.coerce(value)
        self.check_text(text)
        return text

    def iter_value_errors(self, value: Any) -> Iterator[FieldValueError]:
        yield from super().iter_value_errors(value)
        try:
            self.check_text(value)
        except FieldValueError as error:
            yield error

    def check_text(self, text: str) -> None:
        """Check length and form; only written values are checked."""
        if self.max_length is not None and len(text) > self.max_length:
            raise self.build_value_error(
                f"longer than {self.max_length} characters ({len(text)})",
                max_length=self.max_length,
            )

    def fits_all(self, values: list[Any]) -> bool:
        if set(map(type, values)) != {str} or self.has_form:
            return False
        if self.max_length is not None and max(map(len, values)) > self.max_length:
            return False
        joined = "".join(values)
        return joined.isascii() and "\0" not in joined

    def column_type(self, dialect: str) -> str:
        if dialect == "postgres" and self.max_length is not None:
            return f"varchar({self.max_length})"
        return super().column_type(dialect)

    def checks(self, dialect: str) -> list[str]:
        if dialect == "sqlite" and self.max_length is not None:
            return [f"length({{0}}) <= {self.max_length}"]
        return []


class CharField(TextField[T]):
    """Text of at most `max_length` characters."""

    @overload
    def __init__(self: CharField[str], *, max_length: int, **options: Unpack[NotNull]) -> None: ...
    @overload
    def __init__(
        self: CharField[str | None], *, max_length: int, **options: Unpack[Nullable]
    ) -> None: ...
    def __init__(self, *, max_length: int, **options: Any) -> None:
        self._init_text(max_length, options)


class SlugField(TextField[T]):
    """ASCII letters, digits, hyphens and underscores."""

    @overload
    def __init__(
        self: SlugField[str], *, max_length: int = ..., **options: Unpack[NotNull]
    ) -> None: ...
    @overload
    def __init__(
        self: SlugField[str | None], *, max_length: int = ..., **options: Unpack[Nullable]
    ) -> None: ...
    def __init__(self, *, max_length: int = 50, **options: Any) -> None:
        self._init_text(max_length, options)

    has_form = True

    def check_text(self, text: str) -> None:
        super().check_text(text)
        if _SLUG.fullmatch(text) is None:
            raise self.build_value_error("takes letters, digits, hyphens and underscores only")


class EmailField(TextField[T]):
    """An e-mail address: one `@`, no spaces, a host with a dot. Whether it exists only a message
    tells.
    """

    @overload
    def __init__(
        self: EmailField[str], *, max_length: int = ..., **options: Unpack[NotNull]
    ) -> None: ...
    @overload
    def __init__(
        self: EmailField[str | None], *, max_length: int = ..., **options: Unpack[Nullable]
    ) -> None: ...
    def __init__(self, *, max_length: int = 254, **options: Any) -> None:
        self._init_text(max_length, options)

    has_form = True

    def check_text(self, text: str) -> None:
        super().check_text(text)
        local, at, host = text.rpartition("@")
        # 64 octets are the most for a local part: RFC 5321, section 4.5.3.1.1
        fits = len(local) <= 64 and _LOCAL.fullmatch(local) and _HOST.fullmatch(host)
        if not (at and fits):
            raise self.build_value_error("not an e-mail address")


class URLField(TextField[T]):
    """An absolute http or https address."""

    @overload
    def __init__(
        self: URLField[str], *, max_length: int = ..., **options: Unpack[NotNull]
    ) -> None: ...
    @overload
    def __init__(
        self: URLField[str | None], *, max_length: int = ..., **options: Unpack[Nullable]
    ) -> None: ...
    def __init__(self, *, max_length: int = 2000, **options: Any) -> None:
        self._init_text(max_length, options)

    has_form = True

    def check_text(self, text: str) -> None:
        super().check_text(text)
        from urllib.parse import urlsplit

        try:
            parts = urlsplit(text)
            # asking for the port is what checks it
            port = parts.port
        except ValueError:
            raise self.build_value_error("not an address") from None
        # urlsplit() drops tabs and line ends without a word, so that the text itself is looked at
        printable = text.isprintable() and not any(c.isspace() for c in text)
        absolute = parts.scheme in {"http", "https"} and parts.hostname and port != 0
        if not (absolute and printable):
            raise self.build_value_error("not an absolute http or https address")
