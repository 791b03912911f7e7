"""SQL: text that only this package's literals and quoted names can enter.

A plain string is no `SQL` and is refused wherever a part of a statement is expected; this
keeps callers' text out of statements. `StatementBuilder` hands out placeholders and aliases for
one statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, LiteralString, Protocol

from treefold_orm._base.errors import FieldError
from treefold_orm._base.names import quote

if TYPE_CHECKING:
    from treefold_orm._fields.base import AnyField
    from treefold_orm._fields.meta import Meta

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)

MAX_PARAMETERS = 32_766  # of SQLite; PostgreSQL takes one more

Encoder = Callable[[Any], Any]


class SQL:
    """A piece of a statement."""

    __slots__ = ("text",)

    def __init__(self, template: LiteralString, *parts: SQL) -> None:
        texts = [part.text for part in parts if _require_sql(part)]
        # without parts the braces stay: such a piece is a template for `fill_template`
        self.text: str = template.format(*texts) if texts else template

    def fill_template(self, args: list[SQL]) -> SQL:
        """This piece with its `{}` replaced, for pieces that are kept as templates."""
        return _wrap_trusted_text(
            self.text.format(*[arg.text for arg in args if _require_sql(arg)])
        )

    def __repr__(self) -> str:
        return f"SQL({self.text!r})"


def _require_sql(part: Any) -> bool:
    # exactly this class: a subclass could bring a text that no function here has made
    if part.__class__ is not SQL:
        raise TypeError(f"{type(part).__name__} cannot become part of a statement: only SQL can")
    return True


def _wrap_trusted_text(text: str) -> SQL:
    made = SQL("")
    made.text = text
    return made


def join_sql(separator: LiteralString, parts: Iterable[SQL]) -> SQL:
    """Join pieces with a literal separator."""
    made = list(parts)
    joined = SQL("")
    joined.text = separator.join(part.text for part in made if _require_sql(part))
    return joined


def quote_column(field: AnyField) -> SQL:
    """The quoted column of a field, as quoted when its model was defined."""
    return _wrap_trusted_text(field.quoted)


def build_qualified_column(alias: SQL, field: AnyField) -> SQL:
    """The quoted column of a field, of the table behind an alias."""
    return SQL("{}.{}", alias, quote_column(field))


def quote_table(meta: Meta) -> SQL:
    """The quoted table of a model, as quoted when it was defined."""
    return _wrap_trusted_text(meta.table)


def render_query_type(field: AnyField, dialect: str) -> SQL:
    """The type of a field's values in queries, which is part of its code and no caller's text."""
    return _wrap_trusted_text(field.query_type(dialect))


def quote_identifier(name: str) -> SQL:
    """A name of the schema, quoted here."""
    return _wrap_trusted_text(quote(name))


def quote_name_as_string(name: str) -> SQL:
    """A name of the schema as a text."""
    quote(name)  # refuses names that could end the text in any other way
    return _wrap_trusted_text("'" + name.replace("'", "''") + "'")


def require_plain_word(text: str) -> SQL:
    """A plain word that was checked where it was declared, for between single quotes."""
    if _WORD.fullmatch(text) is None:
        raise TypeError(f"{text!r} cannot become part of a statement: only a plain word can")
    return _wrap_trusted_text(text)


def wrap_declared_sql(text: str) -> SQL:
    """SQL that an application declared in its code, after `Template` has checked it."""
    return _wrap_trusted_text(text)


def fill_schema_template(text: str, columns: Iterable[AnyField]) -> SQL:
    """SQL of a schema with `{}` for columns, after `SchemaSQL` has checked it."""
    return _wrap_trusted_text(text.format(*[column.quoted for column in columns]))


def render_integer(value: int) -> SQL:
    """An integer that this package made."""
    return _wrap_trusted_text(str(int(value)))


class Placeholders(Protocol):
    """A dialect, as far as a statement needs it to be finished."""

    reuses: ClassVar[bool]

    def format_placeholder(self, position: int) -> SQL: ...


class StatementBuilder:
    """One statement in the making: its parameters and its aliases.

    Parameters are marked by number first and get their placeholders in `finish_statement`, in the
    order in which they stand in the finished text; a piece may therefore be built early, used
    twice, or not at all.

    Attributes:
        consts: the values that belong to the shape of the statement.
        ctes: the names of CTEs, by what they are and where their parameters start.
        same: where an outer query has the parameters of a CTE that an inner one shares with it, by
            their place and number in the inner one.
    """

    def __init__(self) -> None:
        # each way in which a parameter travels has a slot, and `\0` and the slot are its mark
        self._slots: list[tuple[int, Encoder | None]] = []
        self._known: dict[tuple[int, Encoder | None], int] = {}
        self.consts: list[Any] = []
        self._aliases = 0
        self.ctes: dict[Any, SQL] = {}
        self.same: dict[tuple[int, int], int] = {}
        self._with: list[SQL] = []
        self._recursive = False
        self._ctes = 0

    def bind_param(self, index: int, encode: Encoder | None) -> SQL:
        """A mark for the query's parameter at `index`, to be encoded by `encode`."""
        # one mark for each way a parameter travels: what is written twice is then the same text
        slot = self._known.setdefault((index, encode), len(self._slots))
        if slot == len(self._slots):
            self._slots.append((index, encode))
        return _wrap_trusted_text(f"\0{slot}\0")

    def bind_const(self, value: Any) -> SQL:
        """A mark for a value that belongs to the statement's shape; the same for the same value."""
        for place, known in enumerate(self.consts, start=1):
            # by class as well, since 1 == True == 1.0; no dictionary, since a list has no hash
            if known.__class__ is value.__class__ and known == value:
                return self.bind_param(-place, None)
        self.consts.append(value)
        return self.bind_param(-len(self.consts), None)

    def generate_table_alias(self) -> SQL:
        """A new alias: t0, t1 and so on."""
        self._aliases += 1
        return _wrap_trusted_text(f"t{self._aliases - 1}")

    def generate_cte_name(self) -> SQL:
        """A new name for a CTE: w0, w1 and so on."""
        self._ctes += 1
        return _wrap_trusted_text(f"w{self._ctes - 1}")

    def add_cte_text(self, text: SQL, *, recursive: bool = False) -> None:
        """Add the text of a CTE, after those it needs."""
        self._with.append(text)
        self._recursive = self._recursive or recursive

    def finish_statement(
        self, statement: SQL, dialect: Placeholders
    ) -> tuple[str, list[tuple[int, Encoder | None]]]:
        """Return the text with the dialect's placeholders, and for each the parameter it stands
        for.

        A slot names an index into the query's parameters; negative ones count `consts` from -1
        downwards.
        """
        if self._with:
            template: LiteralString = "WITH RECURSIVE {} {}" if self._recursive else "WITH {} {}"
            statement = SQL(template, join_sql(", ", self._with), statement)
        pieces = statement.text.split(
            "\0"
        )  # no name, literal or number contains NUL: every other piece is a mark
        used: list[int] = []
        positions: dict[int, int] = {}
        for place in range(1, len(pieces), 2):
            slot = int(pieces[place])
            if slot not in positions or not dialect.reuses:
                used.append(slot)
                positions[slot] = len(used)
            pieces[place] = dialect.format_placeholder(positions[slot]).text
        if len(used) > MAX_PARAMETERS:
            raise FieldError(
                f"A statement takes at most {MAX_PARAMETERS:,} values, got {len(used):,}; give "
                "them as one list, as in filter(name__in=[...]), or in several queries"
            )
        return "".join(pieces), [self._slots[slot] for slot in used]
