"""`Home`: the alias of a model's database, for a query that no `using()` and no row has placed.

It is plain text, and such a query runs there. Inside of another query on models of the same
database it runs where that one does: `Author.objects.using("replica").filter(
pk__in=Post.objects.values("author"))` asks the replica alone. It is told apart from a chosen alias,
`using("default")` included, by its class.
"""

from __future__ import annotations

DEFAULT = "default"
"""The database of models without `Meta.database`."""


class Home(str):
    """An alias that was not chosen: that of the model of a query."""

    __slots__ = ()
