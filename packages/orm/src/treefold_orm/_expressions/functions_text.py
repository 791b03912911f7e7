"""Functions of text.

Text is counted and cut in characters (code points), from 1. What is plain in a call (`old`, `new`,
lengths, fillings) is bound; the text itself is a field, an expression or a `Value`.
"""

from __future__ import annotations

from typing import Any

from treefold_orm._base.errors import FieldError
from treefold_orm._expressions.casting import text_of
from treefold_orm._expressions.expressions import Expression
from treefold_orm._expressions.functions import (
    Function,
    OneArgument,
    check_number,
    plain_number,
    plain_text,
    text_argument,
    whole_argument,
)
from treefold_orm._expressions.nodes import Expr, FuncNode
from treefold_orm._fields.carriers import INTEGER, TEXT


class _Text(OneArgument):
    __slots__ = ()

    @classmethod
    def node(cls, args: tuple[Expr, ...], option: str = "") -> Expr:
        return FuncNode(TEXT, cls.names[0], (text_argument(cls.__name__, args[0]),))


class Lower(_Text):
    """Text in lower case, letter by letter."""

    __slots__ = ()
    names = ("lower",)


class Upper(_Text):
    """Text in upper case, letter by letter: "ß" stays as it is."""

    __slots__ = ()
    names = ("upper",)


class Trim(_Text):
    """Text without spaces at both ends."""

    __slots__ = ()
    names = ("trim",)


class LTrim(_Text):
    """Text without spaces at its start."""

    __slots__ = ()
    names = ("ltrim",)


class RTrim(_Text):
    """Text without spaces at its end."""

    __slots__ = ()
    names = ("rtrim",)


class ReversedText(_Text):
    """Text with its characters in the opposite order, public as `Reverse` (`models/reverse`)."""

    __slots__ = ()
    names = ("reverse",)


class MD5(_Text):
    """The MD5 of the text in UTF-8, as 32 hexadecimal digits; no protection for secrets."""

    __slots__ = ()
    names = ("md5",)


class SHA256(_Text):
    """The SHA-256 of the text in UTF-8, as 64 hexadecimal digits."""

    __slots__ = ()
    names = ("sha256",)


class Length(_Text):
    """Number of characters."""

    __slots__ = ()
    names = ("length",)

    @classmethod
    def node(cls, args: tuple[Expr, ...], option: str = "") -> Expr:
        return FuncNode(INTEGER, "length", (text_argument("Length", args[0]),))


class Position(Function):
    """Where `part` begins in `text`, counted from 1; 0 where it does not occur.

    Args:
        text: A field or expression.
        part: Text, or an expression; empty text is found at 1.
    """

    __slots__ = ()
    names = ("position",)

    def __init__(self, text: Any, part: Any) -> None:
        super().__init__(text, plain_text("Position", "part", part))

    @classmethod
    def node(cls, args: tuple[Expr, ...], option: str = "") -> Expr:
        texts = tuple(text_argument("Position", arg) for arg in args)
        return FuncNode(INTEGER, "position", texts)


class Concat(Function):
    """Texts joined; NULL counts as empty.

    Numbers, dates, times and UUIDs are written as `Cast(..., fields.TextField())` writes them;
    other types are a `FieldError`. Text of its own is a `Value`: `Concat("name", Value("!"))`.
    """

    __slots__ = ()
    names = ("concat",)

    def __init__(self, *expressions: Any) -> None:
        if not expressions:
            raise FieldError("Concat must be given something to join")
        super().__init__(*expressions)

    @classmethod
    def node(cls, args: tuple[Expr, ...], option: str = "") -> Expr:
        return FuncNode(TEXT, "concat", tuple(text_of("Concat", arg) for arg in args))


class Replace(Function):
    """`text` with every `old` replaced by `new`; an empty `old` replaces nothing.

    Args:
        text: A field or expression.
        old: Text, or an expression.
        new: Text, or an expression.
    """

    __slots__ = ()
    names = ("replace",)

    def __init__(self, text: Any, old: Any, new: Any = "") -> None:
        super().__init__(text, plain_text("Replace", "old", old), plain_text("Replace", "new", new))

    @classmethod
    def node(cls, args: tuple[Expr, ...], option: str = "") -> Expr:
        return FuncNode(TEXT, "replace", tuple(text_argument("Replace", arg) for arg in args))


class Substr(Function):
    """`length` characters from `start`, counted from 1; all that follow without a `length`.

    Args:
        text: A field or expression.
        start: A number from 1, or an expression; one that is less than 1 begins before the text,
            where there are no characters.
        length: A number from 0, or an expression; `DataError` for a row where it is negative.
    """

    __slots__ = ()
    names = ("substr", "substr_any", "substr_rest", "substr_rest_any")

    def __init__(self, text: Any, start: Any, length: Any = None) -> None:
        if not isinstance(start, Expression):
            remedy = "; the end of a text is Right(text, length)"
            check_number("Substr", "start", start, low=1, remedy=remedy)
        given = [text, plain_number("Substr", "start", start)]
        if length is not None:
            given.append(plain_number("Substr", "length", length, low=0))
        super().__init__(*given)
        if isinstance(start, Expression) or isinstance(length, Expression):
            self.option = "computed"

    @classmethod
    def node(cls, args: tuple[Expr, ...], option: str = "") -> Expr:
        text, *numbers = args
        name = "substr" if len(args) == 3 else "substr_rest"
        return FuncNode(
            TEXT,
            f"{name}_any" if option else name,
            (text_argument("Substr", text), *(whole_argument("Substr", n) for n in numbers)),
            option,
        )


class _Counted(Function):
    """A text, and a number of characters or copies."""

    __slots__ = ()

    @classmethod
    def node(cls, args: tuple[Expr, ...], option: str = "") -> Expr:
        function = cls.__name__
        text, number, *filling = args
        texts = [text_argument(function, arg) for arg in (text, *filling)]
        return FuncNode(
            TEXT, cls.names[0], (texts[0], whole_argument(function, number), *texts[1:])
        )


class Left(_Counted):
    """The first `length` characters; a negative `length` leaves out so many at the end."""

    __slots__ = ()
    names = ("left",)

    def __init__(self, text: Any, length: Any) -> None:
        super().__init__(text, plain_number("Left", "length", length))


class Right(_Counted):
    """The last `length` characters; a negative `length` leaves out so many at the start."""

    __slots__ = ()
    names = ("right",)

    def __init__(self, text: Any, length: Any) -> None:
        super().__init__(text, plain_number("Right", "length", length))


class LPad(_Counted):
    """Text filled up on the left to `length` characters, and cut at its end where it is longer.

    Args:
        text: A field or expression.
        length: A number, or an expression.
        fill: Text that is repeated, or an expression; empty text fills nothing.
    """

    __slots__ = ()
    names = ("lpad",)

    def __init__(self, text: Any, length: Any, fill: Any = " ") -> None:
        number = plain_number("LPad", "length", length, low=0)
        super().__init__(text, number, plain_text("LPad", "fill", fill))


class RPad(_Counted):
    """Text filled up on the right to `length` characters, and cut at its end where it is longer.

    Args:
        text: A field or expression.
        length: A number, or an expression.
        fill: Text that is repeated, or an expression; empty text fills nothing.
    """

    __slots__ = ()
    names = ("rpad",)

    def __init__(self, text: Any, length: Any, fill: Any = " ") -> None:
        number = plain_number("RPad", "length", length, low=0)
        super().__init__(text, number, plain_text("RPad", "fill", fill))


class Repeat(_Counted):
    """The text so many times; empty for 0 and less."""

    __slots__ = ()
    names = ("repeat",)

    def __init__(self, text: Any, number: Any) -> None:
        super().__init__(text, plain_number("Repeat", "number", number, low=0))
