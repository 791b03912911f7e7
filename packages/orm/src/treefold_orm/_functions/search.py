"""Full text search in queries: SearchVector and SearchRank. No SQL is built here."""

from __future__ import annotations

from treefold_orm._base.errors import FieldError
from treefold_orm._base.names import check_untainted
from treefold_orm._expressions.conditions import ResolvableCondition
from treefold_orm._expressions.lookups import refuse_sensitive, walk_path
from treefold_orm._expressions.nodes import Expr, Node, RankNode, SearchNode
from treefold_orm._expressions.resolving import Resolvable
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.base import Field
from treefold_orm._fields.carriers import FLOAT, TEXT
from treefold_orm._search.search_index import require_search_index
from treefold_orm._search.search_text import SearchQuery, as_query
from treefold_orm._terms.operators import Condition
from treefold_orm._terms.search_index import SearchIndex


class SearchVector:
    """The text of some fields of the model, as something to search in:
    `filter(SearchVector("title", "body").matches("tree"))`.

    The fields must be of one `SearchIndex` of the model: all of them, or a part.
    """

    def __init__(self, *fields: str) -> None:
        if not fields:
            raise FieldError("SearchVector needs at least one field")
        for name in fields:
            check_untainted(name)
        self.fields = fields

    def matches(self, query: SearchQuery | str) -> Condition:
        """The rows whose text matches the search."""
        return _Matches(self, as_query(query))

    def settle(self, scope: Scope) -> tuple[SearchIndex, tuple[Field[object], ...]]:
        """The index and the columns that are searched."""
        columns: list[Field[object]] = []
        for name in self.fields:
            hops, column, rest = walk_path(scope.meta, name)
            refuse_sensitive(scope.meta, column, name)
            if hops or rest:
                raise FieldError(
                    f"SearchVector takes text fields of {scope.meta.name}, not {name!r}: search "
                    "over relations with any_of()"
                )
            columns.append(column)
        return require_search_index(scope.meta, columns), tuple(dict.fromkeys(columns))


class _Matches(ResolvableCondition):
    def __init__(self, vector: SearchVector, query: SearchQuery) -> None:
        self._vector = vector
        self._query = query

    def resolve_condition(self, scope: Scope) -> Node:
        index, columns = self._vector.settle(scope)
        param = scope.add_param(self._query.text, TEXT)
        return SearchNode((), index, columns, self._query.kind, param)


class SearchRank(Resolvable):
    """How well a row's text fits, more for better, 0 for a row that does not match:
    `annotate(rank=SearchRank(vector, query)).order_by("-rank")`.

    Only the order of one result means something: the databases count differently.
    """

    def __init__(self, vector: SearchVector, query: SearchQuery | str) -> None:
        if not isinstance(vector, SearchVector):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
            raise FieldError(f"SearchRank takes a SearchVector, not {type(vector).__name__}")
        self.vector = vector
        self.query = as_query(query)

    def resolve(self, scope: Scope) -> Expr:
        index, columns = self.vector.settle(scope)
        param = scope.add_param(self.query.text, TEXT)
        return RankNode(FLOAT, SearchNode((), index, columns, self.query.kind, param))
