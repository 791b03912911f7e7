"""The forms in which text is read as a value of another type by `Cast`.

They are regular expressions that Python and PostgreSQL understand alike (without regard to case),
so that both databases accept the same texts: PostgreSQL alone would read "tomorrow" as a date and
"0x10" as a number from some version on. Spaces around a value do not count.
"""

from __future__ import annotations

from typing import LiteralString

_SPACE: LiteralString = r"[ \t\r\n]*"
_DATE: LiteralString = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME: LiteralString = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
_NUMBER: LiteralString = r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?"
_FORMS: dict[str, LiteralString] = {
    "integer": "[-+]?[0-9]+",
    "float": _NUMBER,
    "decimal": _NUMBER,
    "boolean": "(true|t|yes|y|on|1|false|f|no|n|off|0)",
    "date": _DATE,
    "time": _TIME,
    "datetime": _DATE + "[ T]" + _TIME + "(Z|[-+][0-9]{2}(:?[0-9]{2})?)",
    "uuid": "([0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{32})",
}
TRUE = frozenset({"true", "t", "yes", "y", "on", "1"})
TEXT_FORMS: dict[str, LiteralString] = {
    kind: _SPACE + form + _SPACE for kind, form in _FORMS.items()
}
