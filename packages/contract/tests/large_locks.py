"""Locks of many routes, such as a large service has."""

from __future__ import annotations

HEAD = "treefold contract 1 rules 1\nversion v1 stable\n"


def write_large_lock(routes: int, mail: str = "str email") -> str:
    """Return the text of a lock: each place has five routes, and two types of its own."""
    blocks = [HEAD]
    types: list[str] = []
    for number in range(routes // 5):
        base, name = f"/v1/thing-{number:04}", f"Thing{number:04}"
        query = f"  query   page int >=1 = 1\n  query   tag [str] items ..{number + 1} ?\n"
        blocks += [
            f"GET {base}\n  auth    bearer things:read\n{query}  200     json [{name}]\n",
            f"POST {base}\n  auth    bearer things:write\n  body    json New{name}\n"
            f"  201     json {name}\n",
            f"DELETE {base}/{{id:int}}\n  auth    bearer things:write\n  204\n  404     problem\n",
            f"GET {base}/{{id:int}}\n  200     json {name}\n  404     problem\n",
            f"PATCH {base}/{{id:int}}\n  body    json New{name}\n  200     json {name}\n"
            "  404     problem\n",
        ]
        owner = f"Thing{number - 1:04} | null" if number % 10 else "null"
        types += [
            f"type New{name} closed\n  mail    {mail} ?\n  name    str len 1..{number + 1}",
            f'type {name}\n  id      int\n  kind    "a{number}" | "b"\n  mail    {mail} ?\n'
            f"  name    str len 1..{number + 1}\n  owner   {owner}",
        ]
    return "\n".join(blocks) + "\n" + "\n\n".join(sorted(types)) + "\n"
