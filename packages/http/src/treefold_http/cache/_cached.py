"""`@cached(ttl)`: keep the results of a function, or the responses of a handler.

The key of a function is its name and its arguments; the rules for responses are in `_responses`.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from treefold_http._json.json import dumps
from treefold_http._json.json_values import require_json_round_trip
from treefold_http._requests.connection import Connection
from treefold_http._wire.aliases import AnyCallable
from treefold_http.cache._aliases import get_cache
from treefold_http.cache._cache import Cache, check_ttl, validate_and_dedupe_tags

if TYPE_CHECKING:
    from treefold_http._runtime.runtime import Runtime
    from treefold_router import Route

F = TypeVar("F", bound=AnyCallable)

MARK = "__treefold_cached__"
"""The attribute of a handler whose responses are kept; the loader of handlers reads it."""


def cached(
    ttl: float,
    *,
    key: Callable[..., str | None] | None = None,
    tags: Sequence[str] | Callable[..., Sequence[str]] = (),
    vary: Sequence[str] = (),
    alias: str = "default",
) -> Cached:
    """Keep results of a function, plain or async, or the answers of a handler, for some seconds.

    `@cached(60)` on a function keeps its results, which must be JSON. On a function named
    `handler` it keeps whole responses, and so does `cached(60)` in a list of middleware.

    Args:
        ttl: seconds, at most 30 days.
        key: takes the arguments of the function, or the request, and returns the key of the
            result; None for a result that is not kept. For responses it takes the place of what was
            read of the request, and so has to name the user where there is one.
        tags: names under which results can be invalidated, or a function of the arguments, or of
            the request, that returns them.
        vary: fields of the request that tell answers apart; they go into `Vary`.
        alias: of the cache.

    Raises:
        ValueError: for a time that is not positive.
        TypeError: where it decorates a function inside a function that uses variables of the outer
            one, without a key: they are no arguments.
    """
    return Cached(ttl, key=key, tags=tags, vary=vary, alias=alias)


class Cached:
    """A decorator of functions and an entry of middleware; made by `cached`."""

    keeps_answers = True  # `_chains.cache_place` finds it by this
    is_for_requests = True

    def __init__(
        self,
        ttl: float,
        *,
        key: Callable[..., str | None] | None,
        tags: Sequence[str] | Callable[..., Sequence[str]],
        vary: Sequence[str],
        alias: str,
    ) -> None:
        self.ttl = check_ttl(ttl)
        self.key = key
        self.vary = tuple(sorted({name.lower() for name in vary}))
        self._tags = tags if callable(tags) else validate_and_dedupe_tags(tags)
        self._alias = alias

    @property
    def cache(self) -> Cache:
        """The cache that it uses."""
        return get_cache(self._alias)

    def prepare(self, app: Runtime, extensions: Sequence[Any]) -> None:
        """Open the cache; called at boot.

        Raises:
            SettingsError: for an alias that is not configured.
        """
        del extensions
        self.cache.get_state(app)

    def find_redis_url(self, app: Runtime) -> str | None:
        """Return the URL of the Redis that has its values, None if they are in memory."""
        return self.cache.get_state(app).backend.redis_url

    def compute_tags(self, *args: Any, **kwargs: Any) -> Sequence[str]:
        """Return the tags of one result."""
        if callable(self._tags):
            return validate_and_dedupe_tags(self._tags(*args, **kwargs))
        return self._tags

    def __call__(self, function: F) -> F:
        """Decorate a function."""
        if function.__name__ == "handler":
            # no wrapper: the loader places the cache among the middleware of the route
            setattr(function, MARK, self)
            return function
        return _wrap_function(self, function)

    def for_route(self, route: Route | None, entries: Sequence[Any]) -> Any:
        """Return the layer that keeps the answers of a route."""
        from treefold_http.cache._responses import AnswerLayer

        return AnswerLayer(self, route)

    def __repr__(self) -> str:
        return f"cached({self.ttl:g})"


def _wrap_function(given: Cached, function: Any) -> Any:
    signature = inspect.signature(function)
    name = f"{function.__module__}.{function.__qualname__}"
    if given.key is None:
        _require_no_free_variables(name, function)

    def call_through_cache(get_or_set: Any, args: Any, kwargs: Any) -> Any:
        if given.key is None:
            key = _build_call_key(name, signature.bind(*args, **kwargs))
        elif (own := given.key(*args, **kwargs)) is None:
            return function(*args, **kwargs)
        else:
            key = f"{name}:{own}"
        tags = given.compute_tags(*args, **kwargs)
        return get_or_set(key, lambda: function(*args, **kwargs), ttl=given.ttl, tags=tags)

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            return await call_through_cache(given.cache.get_or_set, args, kwargs)

        return call_async

    @functools.wraps(function)
    def call_sync(*args: Any, **kwargs: Any) -> Any:
        return call_through_cache(given.cache.sync.get_or_set, args, kwargs)

    return call_sync


def _require_no_free_variables(name: str, function: Any) -> None:
    inner = inspect.unwrap(function)  # the closure of a decorator is its own
    code = getattr(inner, "__code__", None)
    free: tuple[str, ...] = code.co_freevars if code is not None else ()
    # `super()` makes the cell `__class__`, and recursion one of the function's own name
    found = [each for each in free if each not in ("__class__", inner.__name__)]
    if found:
        raise TypeError(
            f"@cached on {name} cannot see the variable {found[0]!r} of the function around it,"
            " which its result may depend on; make it a parameter, or pass key="
        )


def _build_call_key(name: str, bound: inspect.BoundArguments) -> str:
    """The name of a function and its arguments; `f(1)` and `f(x=1)` have one key."""
    # `f(1)` and `f(1, limit=10)` are one call if 10 is the default
    bound.apply_defaults()
    arguments = [
        # `*args` is a tuple, which `require_json_round_trip` refuses
        list(value) if kind is inspect.Parameter.VAR_POSITIONAL else value
        for value, kind in zip(
            bound.arguments.values(),
            (bound.signature.parameters[each].kind for each in bound.arguments),
            strict=True,
        )
    ]
    if any(isinstance(value, Connection) for value in arguments):
        raise TypeError(
            f"@cached on {name} cannot make a key from a request; name the function"
            " `handler`, or pass key="
        )
    try:
        require_json_round_trip(arguments, f"An argument of {name}")
    except TypeError as error:
        raise TypeError(f"{error}; change it, or pass key= to @cached") from None
    return f"{name}:{hashlib.sha256(dumps(arguments)).hexdigest()}"
