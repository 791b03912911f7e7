"""`Deployment`: what the checks of this room read of a booted project, computed once.

A view and no check: settings, environment, the chain of middleware of each route, and whether
something refuses a client before its handler runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from treefold_http._chains.middleware_chain import select_route_middlewares
from treefold_http._deploy.members import walk_members
from treefold_http._deploy.reach import Reach, compute_network_reach
from treefold_http._deploy.references import ReferenceReader, References
from treefold_http._deploy.sources import SettingSources
from treefold_http._injection.contract import Shared
from treefold_http._injection.secured import read_security
from treefold_http._plans.handlers import HandlerModule
from treefold_http._wire.errors import Forbidden, HTTPError, TooManyRequests, Unauthorized
from treefold_http.auth._login import login, logout
from treefold_http.auth._passwords import (
    ahash_password,
    averify_password,
    hash_password,
    verify_password,
)
from treefold_http.middleware._ip_allowlist import IPAllowlist
from treefold_http.middleware._rate_limit import RateLimit

if TYPE_CHECKING:
    from treefold_http._injection.contract import Contract, Input
    from treefold_http._serving.host import Host
    from treefold_router import Route

MIDDLEWARE = "Middleware/__init__.py"
CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
PASSWORDS = frozenset({"password", "passwd", "pwd", "passphrase", "passcode", "otp", "totp"})
"""Names of inputs that are passwords, in small letters."""
_OURS = "treefold_http."


# compared and hashed by identity: checks use routes as keys
@dataclass(eq=False)
class ServedRoute:
    """One route with everything that decides who gets its answer.

    Attributes:
        route: the route.
        module: its handler module.
        contract: what its handler takes.
        entries: its middleware, the outermost first, without `under`.
        reader: reads the code of the project.
    """

    route: Route
    module: HandlerModule
    contract: Contract
    entries: Sequence[Any]
    reader: ReferenceReader

    @property
    def file_path(self) -> str:
        """Its file, below the application root."""
        return f"Api/{self.route.file}"

    @property
    def display_name(self) -> str:
        """Its method and its URL, for messages."""
        return f"{self.route.method} {self.route.template}"

    @property
    def is_state_changing(self) -> bool:
        """True if its method changes something."""
        return self.route.method in CHANGING

    @cached_property
    def client_inputs(self) -> Sequence[Input]:
        """The values that a client sends, the members of models too."""
        return [one for each in self.contract.inputs for one in (each, *each.members)]

    @property
    def called_functions(self) -> Sequence[Any]:
        """Its handler, its dependencies, and the factories of what it is provided with."""
        steps = self.contract.steps
        shared = [step.provider.factory for step in steps if isinstance(step, Shared)]
        return [self.module.handler, *self.contract.dependency_functions, *shared]

    @cached_property
    def code_references(self) -> References:
        """What its handler and its dependencies refer to."""
        return self.reader.read(self.called_functions)

    @cached_property
    def needs_credentials(self) -> bool:
        """True if its contract requires credentials that were given out before."""
        own = [one for entry in self.entries for one in read_security(entry)]
        return any(not one.optional for one in (*self.contract.security, *own))

    @cached_property
    def takes_password(self) -> bool:
        """True if a client sends a password to it."""
        return self.is_state_changing and not PASSWORDS.isdisjoint(self.normalized_input_names)

    @cached_property
    def normalized_input_names(self) -> set[str]:
        """The names that a client sends, the fields of bodies too, in letters and digits."""
        names = {one.name for one in self.client_inputs}
        for one in self.contract.inputs:
            names |= {m.read_as or m.name for m in walk_members(one.type) if m.is_input}
        return {normalize_name(name) for name in names}

    @cached_property
    def is_login(self) -> bool:
        """True if it verifies a password that anybody may send."""
        if self.needs_credentials:
            return False
        if self.code_references.includes_any(login, verify_password, averify_password):
            return True
        is_new = self.code_references.includes_any(hash_password, ahash_password)
        return self.takes_password and not is_new

    @cached_property
    def is_public_on_purpose(self) -> bool:
        """True if everybody has to reach it: a login, a logout, a registration."""
        return self.is_login or self.takes_password or self.code_references.includes_any(logout)

    @cached_property
    def is_guarded(self) -> bool:
        """True if credentials, a dependency, a middleware or the handler refuses clients."""
        guards = any(is_guard(entry, self.reader) for entry in self.entries)
        return self.needs_credentials or guards or _references_access_errors(self.code_references)

    @cached_property
    def rate_limits(self) -> Sequence[RateLimit]:
        """The limits in front of it."""
        return [entry for entry in self.entries if isinstance(entry, RateLimit)]

    @cached_property
    def is_rate_limited(self) -> bool:
        """True if a limit of the framework or of the project counts its clients."""
        own = [each for each in self.entries if not _is_framework_object(each)]
        found = self.reader.read([*own, *self.called_functions])
        has_limit = bool(self.rate_limits) or found.includes_any(TooManyRequests)
        return has_limit or 429 in found.constants


@dataclass(eq=False)
class Deployment:
    """A project as it is deployed.

    Attributes:
        host: the application; booted, unless its boot failed.
        environment: the variables of the process.
        is_booted: False if only the settings are known.
    """

    host: Host
    environment: Mapping[str, str]
    is_booted: bool
    sources: SettingSources = field(init=False)

    def __post_init__(self) -> None:
        self.sources = SettingSources(self.host.root)
        self.reader = ReferenceReader(self.host.root)
        self.root = self.host.root
        self.settings = self.host.settings

    @cached_property
    def middleware_folder_entries(self) -> Sequence[Any]:
        """The entries of `Middleware/`."""
        return self.host.project.boot_files.middlewares if self.is_booted else ()

    @cached_property
    def loaded_routes(self) -> Sequence[ServedRoute]:
        """The routes whose files could be loaded."""
        return list(self._build_served_routes()) if self.is_booted else ()

    @cached_property
    def middleware_entries(self) -> Sequence[Any]:
        """All entries of middleware, without `under`: those of `Middleware/`, then of modules."""
        own = [entry for served in self.loaded_routes for entry in served.module.middlewares]
        found = [unwrap_scoped_entry(each) for each in (*self.middleware_folder_entries, *own)]
        return list({id(each): each for each in found}.values())

    @cached_property
    def network_reach(self) -> Reach:
        """From where requests come."""
        return compute_network_reach(self.settings, self.middleware_entries)

    @cached_property
    def non_route_middleware(self) -> Sequence[Any]:
        """The middleware of what is no route: mounts, documents, 404."""
        return select_route_middlewares(None, self.middleware_folder_entries)

    def find_middleware_file(self, entry: Any) -> str:
        """Return the file that lists an entry."""
        for served in self.loaded_routes:
            if any(unwrap_scoped_entry(each) is entry for each in served.module.middlewares):
                return served.file_path
        return MIDDLEWARE

    def _build_served_routes(self) -> Iterator[ServedRoute]:
        project = self.host.project
        for route, module in project.modules.items():
            if isinstance(module, HandlerModule):
                listed = [*self.middleware_folder_entries, *module.middlewares]
                entries = select_route_middlewares(route, listed)
                contract = project.plans[route].contract
                yield ServedRoute(route, module, contract, entries, self.reader)


def unwrap_scoped_entry(entry: Any) -> Any:
    """Return the middleware of an entry, without `under` and other scopes."""
    while hasattr(entry, "entry"):
        entry = entry.entry
    return entry


def is_guard(entry: Any, reader: ReferenceReader) -> bool:
    """Return True for a middleware that refuses clients for who they are."""
    if isinstance(entry, IPAllowlist) or any(not one.optional for one in read_security(entry)):
        return True
    return not _is_framework_object(entry) and _references_access_errors(reader.read([entry]))


def normalize_name(name: str) -> str:
    """Return a name in small letters and digits: `passWord`, `pass_word` and `password` are one."""
    return "".join(each for each in name.casefold() if each.isalnum())


def _is_framework_object(entry: Any) -> bool:
    return type(entry).__module__.startswith(_OURS)


def _references_access_errors(references: References) -> bool:
    if references.includes_any(Unauthorized, Forbidden):
        return True
    return references.includes_any(HTTPError) and not references.constants.isdisjoint({401, 403})
