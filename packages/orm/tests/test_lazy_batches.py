"""Lazy loads in sync code: one query for a whole result, and results that hold no cycle."""

from __future__ import annotations

import gc
import pickle
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from orm_models import Author, Country, Order, Person, Post, Profile

from treefold_orm import DoesNotExist, record_queries


@pytest.fixture(autouse=True)
def rows(db: Any) -> None:
    country = Country.objects.create(name="Peru")
    for number in range(3):
        author = Author.objects.create(name=f"a{number}", country=country)
        Post.objects.create(title=f"p{number}", body=f"b{number}", author=author)
    Profile.objects.create(author=Author.objects.get(name="a0"), site="https://a.example")


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def statements(action: Callable[[], Any]) -> int:
    with record_queries() as seen:
        action()
    return len(seen)


@pytest.mark.parametrize(
    "query",
    [
        lambda: Post.objects.all(),
        lambda: Post.objects.only("title"),
        lambda: Post.objects.select_related("author__country", "editor"),
        lambda: Post.objects.prefetch_related("author"),
        lambda: Post.objects.iterator(),
    ],
    ids=["plain", "only", "joined", "prefetched", "streamed"],
)
@pytest.mark.usefixtures("without_collector")
def test_results_are_freed_without_the_collector(query: Callable[[], Any]) -> None:
    found = list(query())
    seen = [weakref.ref(post) for post in found]
    seen += [weakref.ref(post.author) for post in found]
    del found
    assert [ref() for ref in seen] == [None] * len(seen)


@pytest.mark.usefixtures("without_collector")
def test_lazily_loaded_relations_are_freed_with_their_result() -> None:
    found = list(Post.objects.all())
    seen = [weakref.ref(post.author.country) for post in found if post.author.country is not None]
    assert len(seen) == 3
    del found
    assert [ref() for ref in seen] == [None] * 3


@pytest.mark.parametrize(
    ("loaded", "name"), [("author", "author"), ("title", "body"), ("title", "author_id")]
)
def test_one_query_serves_every_instance(loaded: str, name: str) -> None:
    found = list(Post.objects.only(loaded))
    assert statements(lambda: [getattr(post, name) for post in found]) == 1


def test_batches_survive_when_the_other_instances_are_gone() -> None:
    posts = list(Post.objects.order_by("id"))
    last = posts.pop()
    del posts
    assert last.author.name == "a2"
    assert statements(lambda: last.author.country) == 1


def test_a_deferred_key_and_its_relation_are_two_queries() -> None:
    found = list(Post.objects.only("title"))
    assert statements(lambda: [post.author.name for post in found]) == 2


def test_relations_of_joined_instances_are_loaded_together() -> None:
    found = list(Post.objects.select_related("author"))
    assert statements(lambda: [post.author.country for post in found]) == 1


def test_absent_rows_of_a_one_to_one_are_known_for_all() -> None:
    found: list[Any] = list(Author.objects.order_by("name"))
    with record_queries() as seen:
        sites: list[Any] = []
        for author in found:
            try:
                sites.append(author.profile.site)
            except DoesNotExist:
                sites.append(None)
    assert (sites, len(seen)) == (["https://a.example", None, None], 1)


def test_the_far_side_of_a_one_to_one_knows_its_owner() -> None:
    author: Any = next(iter(Author.objects.filter(name="a0")))
    profile = author.profile
    assert statements(lambda: profile.author) == 0
    assert profile.author is author


def test_equal_keys_give_one_instance() -> None:
    boss = Person.objects.create(name="boss")
    for number in range(3):
        Person.objects.create(name=f"p{number}", boss=boss)
    found = list(Person.objects.filter(name__startswith="p"))
    assert len({id(person.boss) for person in found}) == 1


def test_a_changed_key_loads_the_row_it_names() -> None:
    first, second, _ = Post.objects.order_by("id")
    assert first.author.name == "a0"
    second.author_id = Author.objects.create(name="new").id
    assert second.author.name == "new"


def test_refreshed_instances_load_anew() -> None:
    first, second, _ = Post.objects.order_by("id")
    assert first.author.name == "a0"
    Author.objects.filter(name="a1").update(name="renamed")
    second.refresh()
    assert second.author.name == "renamed"


def test_a_saved_version_is_not_undone_by_a_batch() -> None:
    for number in range(2):
        Order.objects.create(number=number, shop="s", total=1)
    first, second = Order.objects.only("number").order_by("id")
    assert first.shop == "s"
    second.number = 7
    second.save()
    assert (second.shop, second.version) == ("s", 2)
    second.number = 8
    second.save()


def test_columns_loaded_later_are_compared_when_saving() -> None:
    found = list(Post.objects.only("title").order_by("id"))
    assert [post.body for post in found] == ["b0", "b1", "b2"]
    assert statements(lambda: [post.save() for post in found]) == 0
    found[1].body = "new"
    assert statements(found[1].save) == 1


def test_a_column_of_a_row_that_is_gone_raises_does_not_exist() -> None:
    post = Post.objects.only("title").get(title="p0")
    Post.objects.filter(title="p0").delete()
    with pytest.raises(Post.DoesNotExist, match=r"The row of this Post is gone"):
        _ = post.body


def test_a_dangling_key_is_looked_up_again() -> None:
    found = list(Post.objects.order_by("id"))
    found[0].author_id = 10_000
    with pytest.raises(Author.DoesNotExist, match=r"The Author this Post points to is gone"):
        _ = found[0].author
    Author.objects.create(id=10_000, name="late")
    assert found[0].author.name == "late"


def test_pickled_instances_travel_alone() -> None:
    found = list(Post.objects.all())
    twin = pickle.loads(pickle.dumps(found[0]))
    assert twin == found[0]
    assert statements(lambda: twin.author) == 1
