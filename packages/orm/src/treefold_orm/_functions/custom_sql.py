"""Functions and lookups of an application's own: `Func` and `register_lookup`.

They add a template to a statement, fixed and checked where it is declared (see
`_expressions/template.py`). Names given to them are fields, everything else is bound.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from treefold_orm._base.errors import FieldError, ModelError
from treefold_orm._expressions.lookups import (
    DATE_PARTS,
    OPERATORS,
    TIME_PARTS,
    CustomLookup,
    custom_lookups,
)
from treefold_orm._expressions.nodes import CustomNode, Expr
from treefold_orm._expressions.operands import convert_declared_function_args
from treefold_orm._expressions.resolving import Resolvable, resolve
from treefold_orm._expressions.scope import Scope
from treefold_orm._expressions.template import Template
from treefold_orm._fields.base import AnyField
from treefold_orm._terms.values import as_expression

_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_TAKEN = OPERATORS | DATE_PARTS | TIME_PARTS | {"date", "time", "length", "pk"}


class Func(Resolvable):
    """Base of functions that an application declares.

    `template` is the SQL with `{}` for each argument; `postgres` and `sqlite` are for what only
    one of them says that way. `output_field` is what comes back (else what the first argument
    is). `takes` names the type of each argument, to which it is converted, or None for what it
    is. Arguments are names of fields, expressions, or values, which are bound:

        class Similarity(Func):
            postgres = "similarity({}, {})"
            output_field = fields.FloatField()

        Post.objects.annotate(near=Similarity("title", Value("tree")))

    Raises `ModelError` at the class for SQL that is more than one expression, `FieldError` for a
    wrong number of arguments or one that cannot be converted, `UnsupportedFeature` on a database
    the template does not name, and for a decimal on SQLite, which keeps it as a scaled integer,
    unless `takes` says what the SQL expects.
    """

    template: ClassVar[str] = ""
    postgres: ClassVar[str] = ""
    sqlite: ClassVar[str] = ""
    output_field: ClassVar[AnyField | None] = None
    takes: ClassVar[tuple[AnyField | None, ...]] = ()
    _template: ClassVar[Template]
    _output: ClassVar[tuple[AnyField | None]] = (None,)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._template = Template(
            cls.template, owner=cls.__name__, postgres=cls.postgres, sqlite=cls.sqlite
        )
        if "output_field" in vars(cls):  # a field gives something else on attribute access
            cls._output = (vars(cls)["output_field"],)
        if cls.takes and len(cls.takes) != cls._template.arity:
            raise ModelError(
                f"{cls.__name__}.takes must name the types of {cls._template.arity} arguments, got "
                f"{len(cls.takes)}"
            )

    def __init__(self, *args: object) -> None:
        wanted = self._template.arity
        if len(args) != wanted:
            raise FieldError(f"{type(self).__name__} takes {wanted} arguments, not {len(args)}")
        self.args = args

    def resolve(self, scope: Scope) -> Expr:
        nested = scope.enter_level()
        nodes = tuple(resolve(as_expression(arg), nested) for arg in self.args)
        field = self._output[0] or next((n.field for n in nodes if n.field is not None), None)
        return convert_declared_function_args(CustomNode(field, self._template, nodes, self.takes))


def register_lookup(
    name: str,
    template: str = "",
    *,
    on: type[AnyField] | tuple[type[AnyField], ...],
    takes: AnyField | None = None,
    postgres: str = "",
    sqlite: str = "",
) -> None:
    """Add a lookup, used as `field__name=value` on fields of the classes `on`.

    `template` is the SQL of the condition with `{}` for the column and `{}` for the value;
    `postgres` and `sqlite` are for what only one of them says that way. `takes` checks and carries
    the value (else the column's own field does):

        register_lookup("longer_than", "length({}) > {}",
                        on=fields.CharField, takes=fields.IntegerField())

    Raises `ModelError` for a name that is taken or no plain name, and for SQL that is more than
    one condition.
    """
    # `created__year` would mean something else in queries that exist already
    if _NAME.fullmatch(name) is None or name in _TAKEN:
        raise ModelError(f"{name!r} cannot name a lookup: use a plain lower-case name of its own")
    made = Template(template, owner=f"The lookup {name!r}", postgres=postgres, sqlite=sqlite)
    if made.arity != 2:
        raise ModelError(f"The lookup {name!r} needs two {{}}: the column and the value")
    known = custom_lookups.setdefault(name, [])
    classes = on if isinstance(on, tuple) else (on,)
    for other in known:
        # one class, one meaning: of a class and its base, the nearer one to the field counts
        if set(other.on) & set(classes):
            raise ModelError(f"The lookup {name!r} is registered already for {classes[0].__name__}")
    known.append(CustomLookup(made, classes, takes))
