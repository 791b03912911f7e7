"""`UNPLACED`: the alias of a query that no `using()` and no row has given a database.

It is the text `default`, and such a query runs there. Inside of another query it runs where that
one does: `Author.objects.using("replica").filter(pk__in=Post.objects.values("author"))` asks the
replica alone. It is told apart from a chosen alias, `using("default")` included, by being this one
object.
"""

from __future__ import annotations


class _Unplaced(str):
    __slots__ = ()


UNPLACED = _Unplaced("default")
