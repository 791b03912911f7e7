"""Plans of paths outside the route table, with the entries of `under` that cover them.

`under("/static/private", guard)` covers a part of the mount `/static`: which entries run depends on
the path. A plan is composed at the first path that a set of entries covers, and kept by that set.
Without an entry that can cover such a path, an `OutsidePlans` is false and never asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from treefold_http._chains.middleware_chain import (
    build_route_layers,
    compose_middleware_chain,
    select_covering_middlewares,
    unwrap_middleware_entry,
)
from treefold_http._chains.socket_chain import compose_socket_chain, require_layers_guard_socket
from treefold_http._chains.subtrees import Under
from treefold_http._plans.fallbacks import plan_fallback
from treefold_http._plans.plans import Plan
from treefold_http._wire.path_segments import (
    Segments,
    decode_segments,
    has_dot_segment,
    list_possible_readings,
)

if TYPE_CHECKING:
    from treefold_http._plans.runtime import ProjectRuntime

_Key: TypeAlias = tuple[Any, ...]


_FILES = {"openapi": "openapi.json", "asyncapi": "asyncapi.json"}
_DOCUMENTS = _FILES | {file: folder for folder, file in _FILES.items()}
"""The documents of all versions and of one version tell the same: a guard of one covers both."""


class OutsidePlans:
    """The plans of one loaded project.

    Args:
        app: the application.
        middlewares: the entries of the project, the outermost first.
    """

    def __init__(self, app: ProjectRuntime, middlewares: Sequence[Any]) -> None:
        self._app = app
        self._entries = middlewares
        scoped = [each for each in middlewares if isinstance(each, Under) and each.may_cover_paths]
        self._everywhere = [each for each in scoped if not each.prefix]
        self._scoped = [each for each in scoped if each.prefix]
        pages = {
            place: find_middleware_page_path(unwrap_middleware_entry(each))
            for place, each in enumerate(middlewares)
        }
        self._pages = {decode_segments(page): place for place, page in pages.items() if page}
        self._plans: dict[_Key, Plan] = {}

    def __bool__(self) -> bool:
        return bool(self._scoped or self._everywhere)

    def find_middleware_page_plan(self, path: bytes | str) -> Plan | None:
        """Return the plan of a path that nothing serves but an entry such as `Metrics`.

        Nothing can read it in another way, so it is compared as sent only.
        """
        segments = decode_segments(path)
        if has_dot_segment(segments):
            return None
        return self.get_or_make_fallback_plan(segments, len(segments))

    def get_or_make_fallback_plan(self, segments: Segments, mount_depth: int) -> Plan | None:
        """Return the plan of a path that no route serves; None for the common plan.

        Args:
            segments: the decoded segments of the path.
            mount_depth: the number of them that are the prefix of a mount.
        """
        covered = self._flag_covering_entries(segments, mount_depth)
        if True not in covered:
            return None
        page = self._pages.get(segments)
        key = covered, page
        if key not in self._plans:
            entries = self._entries
            if page is not None:
                entries = self._move_guards_before_page(page, covered)
            entries = self._select_covering_entries(entries, covered)
            self._plans[key] = plan_fallback(self._app, entries)
        return self._plans[key]

    def get_or_wrap_probe_plan(self, path: bytes, plan: Plan) -> Plan:
        """Return the plan of a probe inside the entries that cover its path, and no others."""
        covered = self._flag_covering_entries(decode_segments(path), 0)
        # a probe connects by address: TrustedHosts for all paths would refuse it
        scoped = [each for each in self._entries if isinstance(each, Under)]
        if not (chosen := self._select_covering_entries(scoped, covered)):
            return plan
        key = covered, path
        if key not in self._plans:
            run = compose_middleware_chain(self._app, build_route_layers(None, chosen), plan.run)
            limit = self._app.settings.max_body
            self._plans[key] = Plan(route=None, run=run, max_body=limit, is_quiet=True)
        return self._plans[key]

    def get_or_make_socket_plan(
        self, prefix: str, segments: Segments, mount_depth: int, endpoint: Callable[[Any], Any]
    ) -> Plan:
        """Return the plan of a socket below a mount.

        Args:
            prefix: the mount.
            segments: the decoded segments of the path.
            mount_depth: the number of them that are the prefix.
            endpoint: serves the socket.

        Raises:
            TypeError: as `require_layers_guard_socket`.
        """
        covered = self._flag_covering_entries(segments, mount_depth)
        # bound methods of one object are equal, so that a mount has one plan
        key = covered, endpoint
        if key not in self._plans:
            entries = self._select_covering_entries(self._entries, covered, is_socket=True)
            layers = build_route_layers(None, entries)
            require_layers_guard_socket(f"below the mount {prefix}", entries, layers)
            run = compose_socket_chain(layers, endpoint)
            self._plans[key] = Plan(route=None, run=run, max_body=self._app.settings.max_body)
        return self._plans[key]

    def require_socket_guards(self, prefix: str) -> None:
        """Refuse entries that cover sockets of a whole mount and cannot guard them.

        Raises:
            TypeError: as `require_layers_guard_socket`.
        """
        segments = decode_segments(prefix)
        covering = self._flag_covering_entries(segments, len(segments))
        entries = self._select_covering_entries(self._entries, covering, is_socket=True)
        require_layers_guard_socket(
            f"below the mount {prefix}", entries, build_route_layers(None, entries)
        )

    def find_covering_entries(self, segments: Segments, mount_depth: int) -> list[Any]:
        """Return the entries that run for a path, still inside their `under`, in order."""
        covered = self._flag_covering_entries(segments, mount_depth)
        page = self._pages.get(segments)
        entries = self._entries if page is None else self._move_guards_before_page(page, covered)
        ids = self._collect_covering_entry_ids(covered)
        return [each for each in entries if not isinstance(each, Under) or id(each) in ids]

    def _flag_covering_entries(self, segments: Segments, mount_depth: int) -> tuple[bool, ...]:
        spellings = list_possible_readings(segments, mount_depth)
        # a guard of `/openapi` also covers `/openapi.json`
        if segments and (other := _DOCUMENTS.get(segments[0])):
            spellings = [*spellings, (other, *segments[1:])]
        return tuple(each.covers_path(spellings) for each in self._scoped)

    def _collect_covering_entry_ids(self, covered: tuple[bool, ...]) -> set[int]:
        scoped = [each for each, covers in zip(self._scoped, covered, strict=True) if covers]
        return {id(each) for each in [*self._everywhere, *scoped]}

    def _select_covering_entries(
        self, entries: Sequence[Any], covered: tuple[bool, ...], *, is_socket: bool = False
    ) -> list[Any]:
        ids = self._collect_covering_entry_ids(covered)
        return select_covering_middlewares(
            entries, lambda each: id(each) in ids, is_socket=is_socket
        )

    def _move_guards_before_page(self, page_index: int, covered: tuple[bool, ...]) -> Sequence[Any]:
        """The entries with those that cover a page before the one that answers it."""
        ids = self._collect_covering_entry_ids(covered)
        inner = [each for each in self._entries[page_index + 1 :] if id(each) in ids]
        others = [each for each in self._entries[page_index + 1 :] if id(each) not in ids]
        return [*self._entries[:page_index], *inner, self._entries[page_index], *others]


def find_middleware_page_path(entry: Any) -> str | None:
    """Return the path that an entry answers by itself, as `Metrics` does; None for none."""
    page = getattr(entry, "page", None)
    return page if isinstance(page, str) else None
