"""Names in Redis belong to one deployment: who uses them says so, and refuses another one.

Two applications in folders of one name, or a staging server with a copied `.env`, would read each
other's sessions. So each process is in the sorted set `treefold:shop:production:deployment`
for as long as it lives, with fingerprints of its secrets and the addresses of its database:

    7f3c...|<fingerprint>,<fingerprint of a fallback>|db.internal:5432/shop

Two members are of one deployment if they have a secret and an address in common; neither having any
counts as well. A test run has names that no other process can have, and claims nothing.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from urllib.parse import quote, unquote

from treefold_http._runtime.boot_report import SettingsError
from treefold_http._runtime.name_space import NameSpace

RENEW_AFTER = 60.0
"""Seconds after which a use of the names renews the claim."""
LIFE = 3600
"""Seconds that a process counts without using them; one that ends in order counts no longer."""

# By the clock of the server, since those of the processes differ. ZREMRANGEBYSCORE removes
# processes that were killed; one script checks and adds, so that two deployments cannot both pass.
SCRIPT = """
local time = redis.call('TIME')
local now = tonumber(time[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local function meets(own, other)
  if own == '' and other == '' then return true end
  for word in string.gmatch(own, '[^,]+') do
    if string.find(',' .. other .. ',', ',' .. word .. ',', 1, true) then return true end
  end
  return false
end
for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local keys, places = string.match(member, '^[^|]*|([^|]*)|([^|]*)$')
  if keys then
    if not meets(ARGV[2], keys) then return {'secret_key', places} end
    if not meets(ARGV[3], places) then return {'databases', places} end
  end
end
redis.call('ZADD', KEYS[1], now + ARGV[4], ARGV[1] .. '|' .. ARGV[2] .. '|' .. ARGV[3])
redis.call('EXPIRE', KEYS[1], ARGV[4])
return {}
"""

_process = secrets.token_hex(8)


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim of this process to the names of an application, on one server."""

    names: NameSpace

    @property
    def deployment_key(self) -> str:
        """The sorted set of the processes."""
        return f"{self.names.own}deployment"

    @property
    def script_arguments(self) -> list[str | int]:
        """The arguments of the script."""
        return [_process, *self._identity_parts, LIFE]

    @property
    def release_command(self) -> tuple[str, ...]:
        """The command that ends the claim."""
        return ("ZREM", self.deployment_key, "|".join((_process, *self._identity_parts)))

    @property
    def _identity_parts(self) -> tuple[str, str]:
        # fingerprints: readers of the server can derive neither a secret nor a signature from them
        keys = (hmac.digest(s.encode(), _PURPOSE, "sha256").hex()[:32] for s in self.names.secrets)
        # `,` and `|` divide a member of the set; the path of a SQLite file may have both
        places = (quote(address, safe="/:") for address in self.names.databases)
        return ",".join(keys), ",".join(places)

    def covers_names(self, names: NameSpace) -> bool:
        """Return True if it is a claim to the same names, by an application of one deployment."""
        return self.names is names or self.script_arguments == Claim(names).script_arguments

    def refuse_other_deployment(self, reply: list[bytes]) -> None:
        """Refuse names that another deployment uses.

        Args:
            reply: what the script has returned.

        Raises:
            SettingsError: with the settings that tell the two apart, or say that they are one.
        """
        if not reply:
            return
        own = ", ".join(self.names.databases) or "no database"
        other = unquote(reply[1].decode()).replace(",", ", ") or "no database"
        if reply[0] == b"secret_key":
            found = "another secret_key than a running process has"
            same = "set the secret_key of the others, and a former one in secret_key_fallbacks"
        else:
            found = f"{own} where a running process has {other}"
            same = f"set same_databases = [{other.partition(', ')[0]!r}]"
        raise SettingsError(
            f"The names {self.names.own}* in Redis must belong to one deployment, got {found}; for"
            " two applications set name = '...' in treefold.toml of one (TREEFOLD_NAME), for two"
            f" environments environment = '...'; if both are one, {same}. A process that was killed"
            f" counts for an hour, or until DEL {self.deployment_key}"
        )


_PURPOSE = b"treefold names in redis"
