"""Full text search: one declaration and one way to ask, on both databases."""

from __future__ import annotations

import asyncio
import itertools
import string
from typing import Any, ClassVar, cast

import orm_articles
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from orm_articles import Article, Note, Writer
from test_injection import PIECES

from treefold_orm import (
    CTE,
    Count,
    FieldError,
    FieldValueError,
    FilterSet,
    InvalidParameter,
    Max,
    Model,
    ModelError,
    Q,
    Rank,
    SearchIndex,
    SearchQuery,
    SearchRank,
    SearchVector,
    TaintedInput,
    UnsupportedFeature,
    Window,
    acreate_all,
    any_of,
    create_all,
    fields,
    read_only,
    taint,
    transaction,
)
from treefold_orm._base.statement import ATOMIC, Statement
from treefold_orm._dialects.postgres import Postgres
from treefold_orm._dialects.sqlite import SQLite
from treefold_orm._runtime.run import run
from treefold_orm._schema.create import _create_tables
from treefold_orm._schema.ddl import statements
from treefold_orm._schema.describe import table_of
from treefold_orm._schema.schema_search import CreateSearchIndex, DropSearchIndex, SearchDef
from treefold_orm._search.search_index import build_search_index_name, list_search_indexes
from treefold_orm._search.search_text import (
    make_fts5_encoder,
    make_fts5_exclusion_encoder,
    split_words,
)

WHOLE = SearchVector("title", "body")


async def create(half: Any, *models: type[Model]) -> None:
    await half.call(lambda: create_all(*models), lambda: acreate_all(*models))


async def articles(half: Any) -> dict[str, Article]:
    """Five articles, a writer of two, and two notes."""
    await create(half, *orm_articles.ALL)
    ann = await half(Writer.objects).create(name="Ann")
    made = {
        name: await half(Article.objects).create(title=title, body=body, writer=writer)
        for name, title, body, writer in (
            ("oak", "Old trees", "An oak lives for a thousand years.", ann),
            ("house", "A tree house", "Children built it, running with planks.", ann),
            ("garden", "Gardening", "Plant a tree, then a hedge. Houses need shade.", None),
            ("cafe", "Café Über", "A café in Paris", None),
            ("empty", "Nothing", None, None),
        )
    }
    await half(Note.objects).create(article=made["oak"], text="quick brown fox")
    await half(Note.objects).create(article=made["garden"], text="lazy brown dog")
    return made


async def titles(half: Any, query: Any) -> list[str]:
    return sorted(await half.rows(query.values_list("title", flat=True)))


async def test_text_is_found_by_its_words(empty: Any, half: Any) -> None:
    await articles(half)
    found = Article.objects.filter(WHOLE.matches("tree"))
    assert await titles(half, found) == ["A tree house", "Gardening", "Old trees"]
    assert await titles(half, Article.objects.filter(WHOLE.matches("TREE house"))) == [
        "A tree house",
        "Gardening",
    ]
    assert await titles(half, Article.objects.filter(WHOLE.matches("runs"))) == ["A tree house"]
    assert await titles(half, Article.objects.filter(WHOLE.matches("tree oak paris"))) == []
    assert await titles(half, Article.objects.exclude(WHOLE.matches("tree"))) == [
        "Café Über",
        "Nothing",
    ]
    assert await titles(half, Article.objects.filter(WHOLE.matches("CAFÉ"))) == ["Café Über"]
    assert await half(found).count() == 3
    assert await half(found).exists()
    assert await half(found).aggregate(n=Count("id"), most=Max("views")) == {"n": 3, "most": 0}
    assert len(await half.rows(found.order_by("title")[1:])) == 2


async def test_a_lookup_searches_one_field(empty: Any, half: Any) -> None:
    await articles(half)
    assert await titles(half, Article.objects.filter(title__search="tree")) == [
        "A tree house",
        "Old trees",
    ]
    assert await titles(half, Article.objects.filter(body__search="tree")) == ["Gardening"]
    assert await titles(half, Article.objects.exclude(body__search="tree")) == [
        "A tree house",
        "Café Über",
        "Nothing",
        "Old trees",
    ]
    assert await titles(half, Article.objects.filter(SearchVector("body").matches("tree"))) == [
        "Gardening"
    ]
    phrase = Article.objects.filter(body__search=SearchQuery("need shade", kind="phrase"))
    assert await titles(half, phrase) == ["Gardening"]
    without = Article.objects.filter(title__search=SearchQuery("tree -house", kind="websearch"))
    assert await titles(half, without) == ["Old trees"]
    either = Q(title__search="gardens") | Q(body__search="oak")
    assert await titles(half, Article.objects.filter(either)) == ["Gardening", "Old trees"]
    assert await titles(half, Article.objects.filter(~Q(title__search="tree"), views=0)) == [
        "Café Über",
        "Gardening",
        "Nothing",
    ]


async def test_phrases_and_the_language_of_search_engines(empty: Any, half: Any) -> None:
    await articles(half)

    async def found(text: str, kind: Any) -> list[str]:
        asked = SearchQuery(text, kind=kind)
        return await titles(half, Article.objects.filter(WHOLE.matches(asked)))

    assert await found("tree house", "phrase") == ["A tree house"]
    assert await found("house tree", "phrase") == []
    assert await found('"tree house"', "websearch") == ["A tree house"]
    assert await found("tree -house", "websearch") == ["Old trees"]
    assert await found('tree -"tree house" -oak', "websearch") == ["Gardening"]
    assert await found("oak or paris", "websearch") == ["Café Über", "Old trees"]
    assert await found("oak OR tree house", "websearch") == [
        "A tree house",
        "Gardening",
        "Old trees",
    ]
    assert await found("tree or nothing -house", "websearch") == [
        "A tree house",
        "Gardening",
        "Nothing",
        "Old trees",
    ]


CAFE, GARDEN, HOUSE, NOTHING, OAK = (
    "Café Über",
    "Gardening",
    "A tree house",
    "Nothing",
    "Old trees",
)
EXCLUDING = {
    "-fish": [HOUSE, CAFE, GARDEN, NOTHING, OAK],
    "-tree": [CAFE, NOTHING],
    "-tree -café": [NOTHING],
    "-house tree": [OAK],
    "-tree paris": [CAFE],
    "-tree fish": [],
    '-"tree house"': [CAFE, GARDEN, NOTHING, OAK],
    '-"tree house" -oak': [CAFE, GARDEN, NOTHING],
    '"-tree"': [HOUSE, GARDEN, OAK],
    "-tree or oak": [CAFE, NOTHING, OAK],
    "oak or -tree": [CAFE, NOTHING, OAK],
    "-tree or -oak": [HOUSE, CAFE, GARDEN, NOTHING],
    "-house -oak or -tree -hedge": [CAFE, NOTHING],
    "paris or -tree -nothing": [CAFE],
    "-tree or house -hedge": [HOUSE, CAFE, NOTHING],
    "-": [],
    '-""': [],
    "-tree or -": [CAFE, NOTHING],
}


@pytest.mark.parametrize("text", EXCLUDING)
async def test_a_search_that_only_excludes_finds_the_rows_without_the_words(
    empty: Any, half: Any, text: str
) -> None:
    await articles(half)
    wanted = EXCLUDING[text]
    match = WHOLE.matches(SearchQuery(text, kind="websearch"))
    assert await titles(half, Article.objects.filter(match)) == wanted
    rest = {CAFE, GARDEN, HOUSE, NOTHING, OAK} - {*wanted}
    assert await titles(half, Article.objects.exclude(match)) == sorted(rest)
    assert await half(Article.objects.filter(match, views=0)).update(views=1) == len(wanted)
    assert await half(Article.objects.filter(match)).delete() == len(wanted)


async def test_words_are_excluded_from_the_searched_fields_alone(empty: Any, half: Any) -> None:
    await articles(half)
    without = SearchQuery("-tree", kind="websearch")
    found = Article.objects.filter(title__search=without)
    assert await titles(half, found) == [CAFE, GARDEN, NOTHING]
    found = Article.objects.filter(body__search=without)
    assert await titles(half, found) == [HOUSE, CAFE, NOTHING, OAK]
    without = SearchQuery("-fox", kind="websearch")
    assert await titles(half, Article.objects.filter(notes__text__search=without)) == [GARDEN]
    notes = Note.objects.filter(text__search=without, article__title__search=without)
    assert await half(notes).count() == 1
    ranked = Article.objects.annotate(r=SearchRank(WHOLE, SearchQuery("-tree", kind="websearch")))
    assert await half(ranked.filter(r__gt=0)).count() == 0


async def test_rows_are_ranked(empty: Any, half: Any) -> None:
    await articles(half)
    rank = SearchRank(WHOLE, "tree")
    query = Article.objects.annotate(rank=rank).order_by("-rank", "title")
    found = await half.rows(query)
    assert [a.title for a in found[3:]] == ["Café Über", "Nothing"]
    assert found[2].title == "Gardening"  # the title counts more than the body
    assert [a.rank > 0 for a in found] == [True, True, True, False, False]
    assert [a.rank for a in found[3:]] == [0.0, 0.0]
    assert await titles(half, query.filter(rank__gt=0)) == [
        "A tree house",
        "Gardening",
        "Old trees",
    ]
    best = Article.objects.filter(WHOLE.matches("tree")).order_by(rank.desc(), "-title")
    assert [a.title for a in await half.rows(best[2:])] == ["Gardening"]
    assert [a.title for a in await half.iterate(best, 1)][2] == "Gardening"
    assert (await half.rows(query.values("title", "rank")[:1]))[0]["rank"] == found[0].rank
    part = Article.objects.annotate(rank=SearchRank(SearchVector("body"), SearchQuery("tree")))
    assert await titles(half, part.filter(rank__gt=0)) == ["Gardening"]
    assert await half(query.filter(rank__gt=0)).count() == 3
    assert (await half(query).aggregate(top=Max("rank")))["top"] == found[0].rank
    assert (await half(query).first()).title == found[0].title
    place = Window(Rank(), order_by=["-rank"])
    placed = Article.objects.annotate(rank=rank).annotate(place=place).filter(place__lte=1)
    assert set(await titles(half, placed)) == {"A tree house", "Old trees"}
    made = CTE(Article.objects.annotate(rank=rank).filter(rank__gt=0))
    assert [a.title for a in await half.rows(made.objects.order_by("rank")[:1])] == ["Gardening"]
    changed = Article.objects.annotate(rank=rank).filter(rank__gt=0)
    assert await half(changed).update(views=1) == 3
    assert await half(changed.filter(title="Gardening")).delete() == 1


async def test_search_over_relations(empty: Any, half: Any) -> None:
    await articles(half)
    assert await titles(half, Article.objects.filter(notes__text__search="brown")) == [
        "Gardening",
        "Old trees",
    ]
    assert await titles(half, Article.objects.exclude(notes__text__search="fox")) == [
        "A tree house",
        "Café Über",
        "Gardening",
        "Nothing",
    ]
    noted = Article.objects.filter(any_of("notes", SearchVector("text").matches("dog")))
    assert await titles(half, noted) == ["Gardening"]
    notes = Note.objects.filter(article__title__search="tree")
    assert await half(notes).count() == 1
    assert await half(Note.objects.exclude(article__title__search="tree")).count() == 1
    without = SearchQuery("plane -fish", kind="websearch")
    assert await half(Note.objects.filter(article__title__search=without)).count() == 0
    without = SearchQuery("-fish", kind="websearch")  # a row that is missing has no text
    assert await half(Article.objects.filter(follows__title__search=without)).count() == 0
    assert await half(Article.objects.exclude(follows__title__search="tree")).count() == 5
    writers = Writer.objects.filter(articles__notes__text__search="fox")
    assert [w.name for w in await half.rows(writers)] == ["Ann"]
    counted = Writer.objects.annotate(
        n=Count("articles", filter=Q(articles__title__search="house"))
    )
    assert (await half(counted).get()).n == 1


async def test_a_search_inside_of_a_tree(empty: Any, half: Any) -> None:
    class Category(Model):
        name = fields.CharField(max_length=80)
        parent = fields.ForeignKey("self", null=True, related_name="children")

    class Product(Model):
        title = fields.CharField(max_length=200)
        text = fields.TextField(default="")
        category = fields.ForeignKey(Category, related_name="products")

        class Meta:
            indexes = (SearchIndex(["title", "text"], config="english", weights="AB"),)

    await create(half, Category, Product)
    garden = await half(Category.objects).create(name="Garden")
    tools = await half(Category.objects).create(name="Tools", parent=garden)
    kitchen = await half(Category.objects).create(name="Kitchen")
    for title, text, category in (
        ("Shears", "For roses, and for a hedge", garden),
        ("Hedge shears", "Sharp", tools),
        ("Fish shears", "For a hedgehog of iron", kitchen),
    ):
        await half(Product.objects).create(title=title, text=text, category=category)
    below = CTE.recursive(Category.objects.filter(name="Garden"), "children")
    query = SearchQuery('shears "hedge" or spade -fish', kind="websearch")
    vector = SearchVector("title", "text")
    found = Product.objects.filter(vector.matches(query), category__in=below.objects)
    best = found.order_by(SearchRank(vector, query).desc(), "id")
    rows = await half.rows(best.values("title")[:20])
    assert [row["title"] for row in rows] == ["Hedge shears", "Shears"]
    levels = CTE.recursive(
        Category.objects.filter(pk__in=found.values("category")), "parent", depth="level"
    )
    assert {c.name: c.level for c in await half.rows(levels.objects)} == {"Tools": 0, "Garden": 0}
    counts = CTE(found.values("category").annotate(n=Count("id")))
    joined = Category.objects.left_join(counts, category="pk").order_by("name")
    assert await half.rows(joined.values_list("name", "n")) == [
        ("Garden", 1),
        ("Kitchen", None),
        ("Tools", 1),
    ]


async def test_every_kind_of_write_is_searched(empty: Any, half: Any) -> None:
    made = await articles(half)

    async def found(text: str) -> int:
        return await half(Article.objects.filter(WHOLE.matches(text))).count()

    made["oak"].body = "A birch"
    await half(made["oak"]).save()
    assert (await found("oak"), await found("birch")) == (0, 1)
    assert await half(Article.objects.filter(WHOLE.matches("birch"))).update(body="An elm") == 1
    assert (await found("birch"), await found("elm")) == (0, 1)
    made["house"].title = "A willow"
    await half(Article.objects).bulk_update([made["house"]], ["title"])
    assert (await found("house"), await found("willow")) == (1, 1)
    rows = [Article(title=f"Fir {i}", slug=f"fir{i}") for i in range(3)]
    await half(Article.objects).bulk_create(rows)
    assert await found("fir") == 3
    again = [Article(title="Pine", slug="fir0")]
    await half(Article.objects).bulk_create(
        again, update_conflicts=["title"], unique_fields=["slug"]
    )
    assert (await found("fir"), await found("pine")) == (2, 1)
    await half(made["garden"]).delete()
    assert await found("hedge") == 0
    assert await half(Writer.objects).delete() == 1
    assert (await found("elm"), await found("willow"), await found("pine")) == (0, 0, 1)

    def undone_now() -> None:
        with transaction(rollback=True):
            Article.objects.create(title="Cedar")
            assert Article.objects.filter(title__search="cedar").count() == 1

    async def undone() -> None:
        async with transaction(rollback=True):
            await Article.objects.acreate(title="Cedar")
            assert await Article.objects.filter(title__search="cedar").acount() == 1

    await half.call(undone_now, undone)
    assert await found("cedar") == 0


async def test_reading_connections_search_too(empty: Any, half: Any) -> None:
    await articles(half)

    def reads() -> int:
        with read_only():
            return Article.objects.filter(WHOLE.matches("tree")).count()

    async def areads() -> int:
        with read_only():
            return await Article.objects.filter(WHOLE.matches("tree")).acount()

    assert await half.call(reads, areads) == 3
    await half(Article.objects).create(title="One more tree")
    assert await half.call(reads, areads) == 4


async def test_rows_that_were_there_before_the_index_are_searched(empty: Any, half: Any) -> None:
    class Bare(Model):
        title = fields.TextField()

        class Meta:
            table = "shelf"

    class Indexed(Model):
        title = fields.TextField()

        class Meta:
            table = "shelf"
            indexes = (SearchIndex(["title"]),)

    await create(half, Bare)
    await half(Bare.objects).create(title="first words")
    await create(half, Indexed)
    await create(half, Indexed)
    await half(Indexed.objects).create(title="second words")
    assert await half(Indexed.objects.filter(title__search="words")).count() == 2
    assert await half(Indexed.objects.filter(title__search="first")).count() == 1


async def test_a_search_index_is_data_that_can_be_dropped_and_made(empty: Any, half: Any) -> None:
    await articles(half)
    dialect: Any = SQLite() if empty.engine == "sqlite" else Postgres()
    search = table_of(Article._meta, dialect).searches[0]
    assert search == SearchDef(
        "searched", "search_article", "id", ("title", "body"), "english", "AD"
    )

    def apply(operation: Any) -> Any:
        yield ATOMIC
        for sql in statements(operation, dialect):
            yield Statement("script", sql)

    def both() -> None:
        run("default", apply(DropSearchIndex(search)), "", write=True)
        run("default", apply(DropSearchIndex(search, if_present=True)), "", write=True)
        Article.objects.create(title="While it was gone")
        run("default", apply(CreateSearchIndex(search)), "", write=True)

    await asyncio.to_thread(both)
    assert await titles(half, Article.objects.filter(title__search="gone")) == ["While it was gone"]
    assert await half(Article.objects.filter(title__search="tree")).count() == 2


def test_postgres_searches_with_the_index(empty: Any) -> None:
    if empty.engine == "sqlite":
        create_all(Article)
        plan = Article.objects.filter(WHOLE.matches("tree")).explain(plan=True)
        assert plan.full_scans == ["searched"]  # the FTS5 table is asked, the model's is not read
        return
    create_all(*orm_articles.ALL)
    empty.configure(server_settings={"enable_seqscan": "off"})
    for query in (
        Article.objects.filter(WHOLE.matches("tree")),
        Article.objects.filter(WHOLE.matches(SearchQuery("tree -x", kind="websearch"))),
        Article.objects.filter(title__search="tree"),
        Note.objects.filter(text__search="tree"),
    ):
        found = query.explain(plan=True).indexes
        assert set(found) & {
            "searched",
            build_search_index_name(list_search_indexes(Note._meta)[0], Note._meta),
        }


def test_one_plan_serves_every_text(empty: Any) -> None:
    def plan(query: Any) -> Any:
        return query._compile_plan("rows")[0]

    first = plan(Article.objects.filter(title__search="a"))
    assert plan(Article.objects.filter(title__search=SearchQuery("b", kind="plain"))) is first
    phrase = Article.objects.filter(title__search=SearchQuery("b", kind="phrase"))
    assert plan(phrase) is not first
    assert plan(Article.objects.filter(WHOLE.matches("a"))) is plan(
        Article.objects.filter(SearchVector("title", "body").matches("b"))
    )


HOSTILE = [
    "",
    " ",
    '"',
    '""',
    '"""',
    "'",
    "''",
    "*",
    "tree*",
    "tr*",
    "^tree",
    "title:tree",
    "secret:x",
    "{title secret}: x",
    "- title : x",
    "NEAR(tree house)",
    "NEAR(tree house, 5)",
    "tree AND",
    "AND",
    "OR",
    "NOT",
    "tree NOT",
    "NOT tree",
    "tree OR",
    "(",
    ")",
    "((tree)",
    "tree + house",
    "tree & house",
    "tree | house",
    "!tree",
    "tree <-> house",
    "tree <2> house",
    "tree:*",
    "tree:A",
    "& |",
    "\\",
    "tree\\",
    "-",
    "--",
    "-tree",
    '-"tree house"',
    '-"',
    "or or or",
    "or",
    "; DROP TABLE search_article",
    "tree'); --",
    "$1 ? {} %s",
    "\u0301",
    "cafe\u0301",
    "\ufeff",
    "\u200b\u200d",
    "日本語 テキスト",
    "🌳",
    "\ue000",
    "a" * 1000,
    "a " * 500,
    '" or ' * 200,
    "-a " * 333,
    "the of and",
]


@pytest.mark.parametrize("text", HOSTILE)
async def test_no_text_is_an_error(empty: Any, half: Any, text: str) -> None:
    await create(half, Writer, Article)
    await half(Article.objects).create(title="A tree house", body="x", secret="hidden word")
    for kind in ("plain", "phrase", "websearch"):
        asked = SearchQuery(text, kind=cast("Any", kind))
        for condition in (WHOLE.matches(asked), Q(title__search=asked), ~WHOLE.matches(asked)):
            assert await half(Article.objects.filter(condition)).count() in {0, 1}
        ranked = Article.objects.annotate(rank=SearchRank(WHOLE, asked))
        assert [type(a.rank) for a in await half.rows(ranked)] == [float]


texts = st.one_of(
    st.text(max_size=40),
    st.lists(st.sampled_from([*PIECES, *HOSTILE[:50], "tree", " "]), max_size=8).map("".join),
    st.text(alphabet=string.punctuation + " abAB\u0301", max_size=30),
)


def test_any_text_at_all_can_be_searched_for(empty: Any) -> None:
    create_all(Writer, Article)
    Article.objects.create(title="A tree house", body="x", secret="hidden word")
    asked = 0

    @settings(
        max_examples=300,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(texts, st.sampled_from(["plain", "phrase", "websearch"]))
    def search(text: str, kind: Any) -> None:
        nonlocal asked
        try:
            query = SearchQuery(text, kind=kind)
        except FieldValueError:
            assert "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text)
            return
        asked += 1
        found = Article.objects.filter(WHOLE.matches(query)).annotate(r=SearchRank(WHOLE, query))
        assert len(found) <= 1
        assert Article.objects.filter(title__search=query).count() <= 1

    search()
    assert asked > 50


def test_a_column_filter_of_the_text_reaches_no_column(empty: Any) -> None:
    create_all(Writer, Article)
    Article.objects.create(title="tree", body="leaf", secret="hidden")
    for text in ("secret:hidden", "secret : hidden", "{secret}:hidden", "hidden", "body:leaf x"):
        for kind in ("plain", "phrase", "websearch"):
            asked = SearchQuery(text, kind=cast("Any", kind))
            assert Article.objects.filter(WHOLE.matches(asked)).count() == 0
            assert Article.objects.filter(title__search=asked).count() == 0


@pytest.mark.parametrize(
    ("kind", "text", "columns", "wanted"),
    [
        ("plain", "Tree house", (), '"Tree" AND "house"'),
        ("plain", "a-b_c", (), '"a" AND "b" AND "c"'),
        ("plain", '"', (), '""'),
        ("plain", "x", ('ti"tle', "b"), '{"ti""tle" "b"} : ("x")'),
        ("phrase", 'say "hi" now', (), '"say hi now"'),
        ("websearch", "a b", (), '("a" AND "b")'),
        ("websearch", 'a OR "b c" -d', (), '("a") OR (("b c") NOT ("d"))'),
        ("websearch", "-a", (), '""'),
        ("websearch", 'a "b', (), '("a" AND "b")'),
        ("websearch", "a-b", (), '("a b")'),
        ("websearch", "NEAR(a b)", (), '("NEAR a" AND "b")'),
    ],
)
def test_fts5_gets_words_in_quotes_only(
    kind: str, text: str, columns: tuple[str, ...], wanted: str
) -> None:
    assert make_fts5_encoder(kind, columns)(text) == wanted


@pytest.mark.parametrize(
    ("text", "columns", "found"),
    [
        ("a", (), None),
        ("a -b", (), None),
        ("-", (), None),
        ('-""', (), None),
        ("-a", (), '("a")'),
        ('-a -"b c"', (), '("a" OR "b c")'),
        ("-a b or -c", (), '("c")'),
        ("-a -b or -c", (), '("a" OR "b") AND ("c")'),
        ("-a or -c", ("x", "y z"), '{"x" "y z"} : (("a") AND ("c"))'),
    ],
)
def test_fts5_is_asked_for_the_words_that_rows_lack(
    text: str, columns: tuple[str, ...], found: str | None
) -> None:
    assert make_fts5_exclusion_encoder(columns)(text) == found


def test_words_keep_their_marks() -> None:
    assert split_words("cafe\u0301 \u0301x 3.14 日本語") == ["cafe\u0301", "x", "3", "14", "日本語"]


def test_what_cannot_be_searched_says_so(empty: Any) -> None:
    cases: list[tuple[type[Exception], str, Any]] = [
        (
            FieldError,
            "no search over 'slug': declare SearchIndex\\(\\['slug'\\]\\)",
            lambda: Article.objects.filter(slug__search="x"),
        ),
        (
            FieldError,
            "no search over 'title', 'slug'",
            lambda: Article.objects.filter(SearchVector("title", "slug").matches("x")),
        ),
        (
            FieldError,
            "has no lookup 'search' for 'views'",
            lambda: Article.objects.filter(views__search="x"),
        ),
        (
            FieldError,
            "leads to a sensitive field",
            lambda: Article.objects.filter(secret__search="x"),
        ),
        (
            FieldError,
            "leads to a sensitive field",
            lambda: Article.objects.filter(SearchVector("secret").matches("x")),
        ),
        (
            FieldError,
            "no field 'tittle'",
            lambda: Article.objects.filter(SearchVector("tittle").matches("x")),
        ),
        (
            FieldError,
            "not 'writer__name': search over relations with any_of",
            lambda: Article.objects.filter(SearchVector("writer__name").matches("x")),
        ),
        (FieldError, "SearchVector needs at least one field", lambda: SearchVector()),
        (
            FieldError,
            "kind='raw' is not a kind of search",
            lambda: SearchQuery("x", kind=cast("Any", "raw")),
        ),
        (
            FieldError,
            "SearchRank takes a SearchVector, not str",
            lambda: SearchRank(cast("Any", "title"), "x"),
        ),
        (
            FieldError,
            "takes plain values, not expressions",
            lambda: Article.objects.filter(title__search=Article.title),
        ),
        (
            FieldError,
            "cannot compare with None",
            lambda: Article.objects.filter(title__search=None),
        ),
        (
            FieldError,
            "not on annotations",
            lambda: Article.objects.annotate(r=SearchRank(WHOLE, "x")).filter(r__search="x"),
        ),
        (
            FieldError,
            "is a comparison, not a value",
            lambda: Article.objects.order_by("title__search"),
        ),
        (FieldValueError, "takes a str, not int", lambda: Article.objects.filter(title__search=5)),
        (
            FieldValueError,
            "longer than 1000 characters \\(1001\\)",
            lambda: SearchQuery("x" * 1001),
        ),
        (FieldValueError, "contains a NUL character", lambda: SearchQuery("a\0b")),
        (FieldValueError, "contains a lone surrogate", lambda: SearchQuery("a\ud800b")),
    ]
    for kind, message, build in cases:
        with pytest.raises(kind, match=message):
            build()


_names = itertools.count()


def declare(index: Any, **columns: Any) -> type[Model]:
    body: dict[str, Any] = {
        "__module__": __name__,
        "title": fields.TextField(),
        "password": fields.TextField(),
        "number": fields.IntegerField(),
        **columns,
        "Meta": type("Meta", (), {"indexes": index, "table": f"declared{next(_names)}"}),
    }
    return cast("type[Model]", type(f"Declared{next(_names)}", (Model,), body))


@pytest.mark.parametrize(
    ("message", "build"),
    [
        ("takes a list of at least one field name", lambda: SearchIndex([])),
        ("takes a list of at least one field name", lambda: SearchIndex("title")),
        ("config='English' cannot name", lambda: SearchIndex(["title"], config="English")),
        ("cannot name a text search", lambda: SearchIndex(["title"], config="a'::x; --")),
        ("weights='E' must have one letter", lambda: SearchIndex(["title"], weights="E")),
        ("weights='AB' must have one letter", lambda: SearchIndex(["title"], weights="AB")),
        ("takes text fields, and 'number' is none", lambda: declare([SearchIndex(["number"])])),
        ("takes text fields, and 'nothing' is none", lambda: declare([SearchIndex(["nothing"])])),
        ("cannot hold 'password': it is sensitive", lambda: declare([SearchIndex(["password"])])),
        ("has SearchIndex\\(\\['title'\\]\\) twice", lambda: declare(
            [SearchIndex(["title"]), SearchIndex(["title"], config="english")])),
        ("twice", lambda: declare([SearchIndex(["title", "title"])])),
        ("FTS5 cannot search a column named 'rank'", lambda: table_of(
            declare([SearchIndex(["rank"])], rank=fields.TextField())._meta, SQLite())),
    ],
)  # fmt: skip
def test_declarations_that_cannot_work_say_so(message: str, build: Any) -> None:
    with pytest.raises(ModelError, match=message):
        build()


def test_a_search_index_has_a_name_of_its_own() -> None:
    class Shelf(Model):
        title = fields.TextField()

        class Meta:
            table = "shelves"
            indexes = (SearchIndex(["title"], name="Shelves"),)

    with pytest.raises(ModelError, match="is a table of its own on sqlite"):
        table_of(Shelf._meta, SQLite())


def test_sqlite_needs_a_key_that_is_a_number() -> None:
    made = declare([SearchIndex(["title"])], key=fields.UUIDField(primary_key=True))
    with pytest.raises(UnsupportedFeature, match="needs a key that is an integer"):
        table_of(made._meta, SQLite())
    assert table_of(made._meta, Postgres()).searches[0].key == "key"


def test_a_sqlite_without_fts5_is_named(empty: Any) -> None:
    made = declare([SearchIndex(["title"])])
    work = _create_tables([made._meta], "default")
    assert next(work) is ATOMIC
    first = next(work)
    if empty.engine == "postgres":
        assert "pg_advisory" in first.sql
        return
    assert "fts5" in first.sql
    with pytest.raises(UnsupportedFeature, match="needs FTS5, which the SQLite of this Python"):
        work.send([])


def test_names_of_a_request_are_refused() -> None:
    name = next(iter(taint({"title": "x"})))
    for build in (
        lambda: SearchVector(name),
        lambda: SearchIndex([name]),
        lambda: SearchIndex(["title"], config=name),
        lambda: SearchIndex(["title"], name=name),
        lambda: Article.objects.filter(**{next(iter(taint({"title__search": "x"}))): "x"}),
    ):
        with pytest.raises(TaintedInput, match="comes from a request"):
            build()


async def test_requests_search_through_a_filter_set(empty: Any, half: Any) -> None:
    await articles(half)

    class Articles(FilterSet):
        model = Article
        fields: ClassVar = {"title": ["search"], "notes__text": ["search"]}
        names: ClassVar = {"note": "notes__text"}

    asked = Articles(taint({"title__search": 'tree "', "note__search": "fox"}))
    assert [a.title for a in await half.rows(asked.apply())] == ["Old trees"]
    with pytest.raises(InvalidParameter, match="secret__search"):
        Articles(taint({"secret__search": "x"})).apply()
    with pytest.raises(FieldValueError, match=r"longer than 1000 characters \(2000\)"):
        Articles(taint({"title__search": "x" * 2000})).apply()
