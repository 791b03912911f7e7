"""Type aliases that several rooms share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

AnyCallable: TypeAlias = Callable[..., Any]
"""A function of the project, whose parameters are known once it is inspected."""

JSONObject: TypeAlias = dict[str, Any]
"""An object of a JSON document."""
