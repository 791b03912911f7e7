"""A project of handlers that generators of clients stumble over, written file by file.

Each module of this folder is a table of one kind: the path of a file to its source, which begins
with `HEAD`. What the handlers do is of no interest; all of them load, and answer what they declare.
"""

from __future__ import annotations

from pathlib import Path

from awkward.bodies import BODIES
from awkward.inputs import INPUTS
from awkward.paths import PATHS
from awkward.responses import RESPONSES

HEAD = """\
import enum
import math
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar, Union
from uuid import UUID

import msgspec
import pydantic
from typing_extensions import NotRequired, TypedDict

from treefold import *
from treefold import Body, Cookie, Depends, File, Form, Header, Query, secured
"""

HANDLERS = {**PATHS, **INPUTS, **BODIES, **RESPONSES}
"""Every file of a handler to its source."""


def write_awkward_project(root: Path) -> Path:
    """Write the project into a folder, and return the folder."""
    for name, source in HANDLERS.items():
        file = root / "Api" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{HEAD}\n{source}\n", encoding="utf-8")
    return root
