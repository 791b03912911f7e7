"""Functions of text.

Text is counted and cut in characters (code points), from 1. What is plain in a call (`old`, `new`,
lengths, fillings) is bound; the text itself is a field, an expression or a `Value`.
"""

from __future__ import annotations

from treefold_orm._base.errors import FieldError
from treefold_orm._expressions.arguments import require_integer_argument, require_text_argument
from treefold_orm._expressions.casts import convert_to_text
from treefold_orm._expressions.nodes import Expr, FuncNode
from treefold_orm._fields.carriers import TEXT
from treefold_orm._functions.base import (
    Function,
    OneArgument,
    make_integer_argument,
    make_text_argument,
    require_integer_in_range,
)
from treefold_orm._terms.operators import Expression


class _Texts(Function, output="text"):
    """A function of texts alone."""

    @classmethod
    def build_node(cls, args: tuple[Expr, ...], option: str = "") -> Expr:
        texts = tuple(require_text_argument(cls.__name__, arg) for arg in args)
        return super().build_node(texts, option)


class _Text(_Texts, OneArgument):
    """A function of one text."""


class Lower(_Text, names="lower"):
    """Text in lower case, letter by letter."""


class Upper(_Text, names="upper"):
    """Text in upper case, letter by letter: "ß" stays as it is."""


class Trim(_Text, names="trim"):
    """Text without spaces at both ends."""


class LTrim(_Text, names="ltrim"):
    """Text without spaces at its start."""


class RTrim(_Text, names="rtrim"):
    """Text without spaces at its end."""


class ReversedText(_Text, names="reverse"):
    """Text with its characters in the opposite order, public as `Reverse` (`models/reverse`)."""


class MD5(_Text, names="md5"):
    """The MD5 of the text in UTF-8, as 32 hexadecimal digits; no protection for secrets."""


class SHA256(_Text, names="sha256"):
    """The SHA-256 of the text in UTF-8, as 64 hexadecimal digits."""


class Length(_Text, names="length", output="integer"):
    """Number of characters."""


class Position(_Texts, names="position", output="integer"):
    """Where `part` begins in `text`, counted from 1; 0 where it does not occur.

    Args:
        text: a field or expression.
        part: text, or an expression; empty text is found at 1.
    """

    def __init__(self, text: object, part: object) -> None:
        super().__init__(text, make_text_argument("Position", "part", part))


class Concat(Function, names="concat"):
    """Texts joined; NULL counts as empty.

    Numbers, dates, times and UUIDs are written as `Cast(..., fields.TextField())` writes them;
    other types are a `FieldError`. Text of its own is a `Value`: `Concat("name", Value("!"))`.
    """

    def __init__(self, *expressions: object) -> None:
        if not expressions:
            raise FieldError("Concat must be given something to join")
        super().__init__(*expressions)

    @classmethod
    def build_node(cls, args: tuple[Expr, ...], option: str = "") -> Expr:
        return FuncNode(TEXT, "concat", tuple(convert_to_text("Concat", arg) for arg in args))


class Replace(_Texts, names="replace"):
    """`text` with every `old` replaced by `new`; an empty `old` replaces nothing.

    Args:
        text: a field or expression.
        old: text, or an expression.
        new: text, or an expression.
    """

    def __init__(self, text: object, old: object, new: object = "") -> None:
        old = make_text_argument("Replace", "old", old)
        super().__init__(text, old, make_text_argument("Replace", "new", new))


class Substr(Function, names="substr substr_any substr_rest substr_rest_any"):
    """`length` characters from `start`, counted from 1; all that follow without a `length`.

    Args:
        text: a field or expression.
        start: a number from 1, or an expression; one that is less than 1 begins before the text,
            where there are no characters.
        length: a number from 0, or an expression; `DataError` for a row where it is negative.
    """

    def __init__(self, text: object, start: object, length: object = None) -> None:
        if not isinstance(start, Expression):
            remedy = "; the end of a text is Right(text, length)"
            require_integer_in_range("Substr", "start", start, low=1, remedy=remedy)
        given = [text, make_integer_argument("Substr", "start", start)]
        if length is not None:
            given.append(make_integer_argument("Substr", "length", length, low=0))
        super().__init__(*given)
        # SQLite counts a negative start from the end, and takes a negative length: only a computed
        # number can be one, and has a function that does as PostgreSQL
        if isinstance(start, Expression) or isinstance(length, Expression):
            self.option = "computed"

    @classmethod
    def build_node(cls, args: tuple[Expr, ...], option: str = "") -> Expr:
        text, *numbers = args
        name = "substr" if len(args) == 3 else "substr_rest"
        return FuncNode(
            TEXT,
            f"{name}_any" if option else name,
            (
                require_text_argument("Substr", text),
                *(require_integer_argument("Substr", n) for n in numbers),
            ),
            option,
        )


class _TextAndNumber(Function):
    """A text, and a number of characters or copies."""

    @classmethod
    def build_node(cls, args: tuple[Expr, ...], option: str = "") -> Expr:
        function = cls.__name__
        text, number, *filling = args
        texts = [require_text_argument(function, arg) for arg in (text, *filling)]
        count = require_integer_argument(function, number)
        return FuncNode(TEXT, cls.names[0], (texts[0], count, *texts[1:]))


class Left(_TextAndNumber, names="left"):
    """The first `length` characters; a negative `length` leaves out so many at the end."""

    def __init__(self, text: object, length: object) -> None:
        super().__init__(text, make_integer_argument("Left", "length", length))


class Right(_TextAndNumber, names="right"):
    """The last `length` characters; a negative `length` leaves out so many at the start."""

    def __init__(self, text: object, length: object) -> None:
        super().__init__(text, make_integer_argument("Right", "length", length))


class LPad(_TextAndNumber, names="lpad"):
    """Text filled up on the left to `length` characters, and cut at its end where it is longer.

    Args:
        text: a field or expression.
        length: a number, or an expression.
        fill: text that is repeated, or an expression; empty text fills nothing.
    """

    def __init__(self, text: object, length: object, fill: object = " ") -> None:
        number = make_integer_argument("LPad", "length", length, low=0)
        super().__init__(text, number, make_text_argument("LPad", "fill", fill))


class RPad(_TextAndNumber, names="rpad"):
    """Text filled up on the right to `length` characters, and cut at its end where it is longer.

    Args:
        text: a field or expression.
        length: a number, or an expression.
        fill: text that is repeated, or an expression; empty text fills nothing.
    """

    def __init__(self, text: object, length: object, fill: object = " ") -> None:
        number = make_integer_argument("RPad", "length", length, low=0)
        super().__init__(text, number, make_text_argument("RPad", "fill", fill))


class Repeat(_TextAndNumber, names="repeat"):
    """The text so many times; empty for 0 and less."""

    def __init__(self, text: object, number: object) -> None:
        super().__init__(text, make_integer_argument("Repeat", "number", number, low=0))
