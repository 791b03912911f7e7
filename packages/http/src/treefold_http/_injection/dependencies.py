"""`Depends`: the marker of a parameter whose value a function provides.

Only the marker lives here. `_injection.resolver` plans the calls when the application boots.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from treefold_http._wire.aliases import AnyCallable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Dependency:
    """The marker that `Depends` returns.

    Attributes:
        call: the function or class that provides the value; None means the annotated class.
        use_cache: True if one value serves all uses within a request.
    """

    call: AnyCallable | None
    use_cache: bool = True


@overload
def Depends(call: Callable[..., AsyncIterator[T]], *, use_cache: bool = True) -> T: ...
@overload
def Depends(call: Callable[..., Iterator[T]], *, use_cache: bool = True) -> T: ...
@overload
def Depends(call: Callable[..., Awaitable[T]], *, use_cache: bool = True) -> T: ...
@overload
def Depends(call: Callable[..., T], *, use_cache: bool = True) -> T: ...
@overload
def Depends(call: None = None, *, use_cache: bool = True) -> Any: ...
def Depends(call: AnyCallable | None = None, *, use_cache: bool = True) -> Any:
    """Mark a parameter as provided by a function: `user: User = Depends(current_user)`.

    The function's own parameters are provided in the same way, to any depth. It may be async,
    plain (then it runs in a worker thread), a class, or a generator whose part after `yield` runs
    when the answer has been sent. `Annotated[User, Depends(current_user)]` means the same.

    Args:
        call: the provider; without one, the annotated class itself.
        use_cache: False to call it once for each use instead of once for a request.
    """
    return Dependency(call, use_cache)
