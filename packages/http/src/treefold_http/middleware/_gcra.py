"""The generic cell rate algorithm, which needs one time for each key (S-95).

The time of a key is the moment at which its limit is completely free again. A request moves it by
one interval, and is refused if that exceeds the burst. Check and move are atomic: in memory there
is no await between them, on Redis they are one script.

Example, `2/10s`: the interval is 5 s, the window 10 s.

| Request at | Time before | Time after | Answer |
|---|---|---|---|
| 100 s | - | 105 s | allowed |
| 101 s | 105 s | 110 s | allowed |
| 102 s | 110 s | 110 s | refused: 115 s is more than 10 s away; wait 3 s |
| 105 s | 110 s | 115 s | allowed |
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from time import monotonic_ns

_SECOND = 1_000_000_000
_UNITS = {
    **dict.fromkeys(("s", "sec", "second"), 1),
    **dict.fromkeys(("m", "min", "minute"), 60),
    **dict.fromkeys(("h", "hour"), 3600),
    **dict.fromkeys(("d", "day"), 86400),
}
# A letter has no plural: `ms` would be minutes, where a reader expects milliseconds.
_SECONDS = _UNITS | {f"{unit}s": seconds for unit, seconds in _UNITS.items() if len(unit) > 1}
_parse = re.compile(r"([1-9][0-9]{0,8}) ?/ ?([1-9][0-9]{0,5})? ?([a-z]+)").fullmatch
_LOOKS = 8
"""How many keys a full table looks at for one that it can forget."""
_SHORT = 64
"""Characters of a key that is kept as it is; a longer one is hashed."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate as GCRA needs it.

    Attributes:
        burst: requests that a client may make at once.
        interval: nanoseconds until one more is allowed.
    """

    burst: int
    interval: int

    @property
    def window_nanoseconds(self) -> int:
        """Nanoseconds until a burst that is used up is forgotten."""
        return self.burst * self.interval

    @property
    def window_seconds(self) -> int:
        """The same in whole seconds."""
        return -(-self.window_nanoseconds // _SECOND)


def parse_rate(text: str, burst: int | None) -> Rate:
    """Read a rate such as `100/hour` or `5/15min`.

    Args:
        burst: requests at once; None for as many as the rate names.

    Raises:
        ValueError: for a text that is not a rate, or a burst below 1.
    """
    match = _parse(text.strip().lower())
    unit = match and _SECONDS.get(match[3])
    if not match or not unit:
        raise ValueError(
            f"Rate must be like '100/hour', '5/min' or '10/15s', got {text!r}; units are"
            f" {', '.join(_UNITS)}"
        )
    if burst is not None and burst < 1:
        raise ValueError(f"RateLimit burst must be at least 1, got {burst!r}")
    count, period = int(match[1]), int(match[2] or 1) * unit * _SECOND
    return Rate(burst or count, max(1, period // count))


class MemoryTable:
    """The times of the keys of one process, up to a maximum number of keys.

    For a new key, a full table drops one with at most one recent request, if a bounded search finds
    such a key, else another one.
    """

    def __init__(self, rate: Rate, max_keys: int) -> None:
        self._rate = rate
        self._max_keys = max_keys
        self._times: dict[str, int] = {}
        # the keys in a ring, and the hand that stops behind the one that was replaced last
        self._ring: list[str] = []
        self._hand = 0

    def __len__(self) -> int:
        return len(self._times)

    def count_request_and_compute_wait(self, key: str) -> tuple[int, int]:
        """Count one request of a key.

        Returns:
            Nanoseconds that it must wait, 0 if it is allowed; and nanoseconds until the limit of
            the key is completely free again.
        """
        # setting the clock of the system neither locks clients out nor lets them in
        now = monotonic_ns()
        rate = self._rate
        # keys of the project have any length, and the table is bounded by their number alone
        if len(key) > _SHORT:
            key = hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=24).hexdigest()
        known = self._times.get(key)
        time = (now if known is None or known < now else known) + rate.interval
        wait = time - now - rate.window_nanoseconds
        # a refused request does not move the time, so that a client that repeats too early still
        # waits no longer than it was told
        if wait > 0:
            return wait, time - rate.interval - now
        if known is None:
            self._add_or_replace_key(key, now)
        self._times[key] = time
        return 0, time - now

    def _add_or_replace_key(self, key: str, now: int) -> None:
        ring = self._ring
        if len(ring) < self._max_keys:
            ring.append(key)
            return
        hand = self._hand
        # A search of fixed length from the place of the last one: a flood of new keys costs each
        # request the same, however many keys there are.
        once = now + self._rate.interval
        for _ in range(_LOOKS):
            if self._times[ring[hand]] <= once:
                break
            hand = (hand + 1) % len(ring)
        del self._times[ring[hand]]
        ring[hand] = key
        self._hand = (hand + 1) % len(ring)


# The time is written with `%.0f`, since Lua's own conversion keeps 14 digits and microseconds since
# 1970 have 16. The key expires when its limit is free again, as an absent one counts.
SCRIPT = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local replies = {}
for index, key in ipairs(KEYS) do
  local interval, capacity = tonumber(ARGV[2 * index - 1]), tonumber(ARGV[2 * index])
  local known = tonumber(redis.call('GET', key) or '') or now
  if known < now then known = now end
  if known > now + capacity then known = now + capacity end
  local new = known + interval
  local wait = new - now - capacity
  if wait > 0 then
    replies[index] = {wait, known - now}
  else
    local life = math.ceil((new - now) / 1000)
    redis.call('SET', key, string.format('%.0f', new), 'PX', life)
    replies[index] = {0, new - now}
  end
end
return replies
"""
"""The same on Redis for any number of requests, in microseconds of its clock.

A key is counted by its interval and its capacity. A clock that was set back locks no client out.
"""


def hash_client_key(key: str) -> str:
    """Return the part of a Redis key that tells clients apart; it does not reveal the client."""
    return hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=16).hexdigest()
