"""A sensitive field is read by its typed column alone, in every method that takes a name."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from orm_models import Author

from treefold_orm import (
    CTE,
    Case,
    Count,
    Exists,
    F,
    FieldError,
    FilterSet,
    Lower,
    Max,
    Model,
    OuterRef,
    Q,
    Rank,
    SearchVector,
    Subquery,
    Value,
    When,
    Window,
    all_of,
    any_of,
    create_all,
    fields,
    filter_from,
    none_of,
)

REFUSED = "leads to a sensitive field; use the typed expression Account.token"


class Account(Model):
    """Fields that hold secrets, by their names."""

    name = fields.CharField(max_length=20)
    token = fields.CharField(max_length=20, unique=True)
    token_day = fields.DateField(null=True)
    token_time = fields.DateTimeField(null=True)
    boss = fields.ForeignKey("Account", null=True, related_name="staff")


def query() -> Any:
    return Account.objects.all()


def account(**values: Any) -> Account:
    return Account(**{"name": "n", "token": "s", **values})


def filter_set(**body: Any) -> Any:
    return type("Accounts", (FilterSet,), {"model": Account, **body})


READ: dict[str, Callable[[], Any]] = {
    "filter": lambda: query().filter(token="x"),
    "filter by lookup": lambda: query().filter(token__startswith="x"),
    "filter by relation": lambda: query().filter(boss__token="x"),
    "filter by Q": lambda: query().filter(Q(name="x") | ~Q(token="x")),
    "filter by F": lambda: query().filter(name=F("token")),
    "filter in": lambda: query().filter(token__in=["x"]),
    "exclude": lambda: query().exclude(token="x"),
    "any_of": lambda: query().filter(any_of("staff", Q(token="x"))),
    "none_of": lambda: query().filter(none_of("staff", Q(token="x"))),
    "all_of": lambda: query().filter(all_of("staff", Q(token="x"))),
    "get": lambda: query().get(token="x"),
    "aget": lambda: query().aget(token="x"),
    "get of a manager": lambda: Account.objects.get(token="x"),
    "annotate": lambda: query().annotate(x=F("token")),
    "alias": lambda: query().alias(x=F("token")),
    "function": lambda: query().annotate(x=Lower("token")),
    "aggregate of a group": lambda: query().annotate(x=Max("staff__token")),
    "aggregate": lambda: query().aggregate(x=Max("token")),
    "filter of an aggregate": lambda: query().annotate(x=Count("staff", filter=Q(token="x"))),
    "case": lambda: query().annotate(x=Case(When(token="x", then=Value(1)))),
    "then": lambda: query().annotate(x=Case(When(name="x", then=F("token")))),
    "window": lambda: query().annotate(x=Window(Rank(), order_by=["token"])),
    "partition": lambda: query().annotate(x=Window(Rank(), partition_by=["token"])),
    "values": lambda: query().values("token"),
    "values of a relation": lambda: query().values("name", "boss__token"),
    "values by keyword": lambda: query().values(x=F("token")),
    "values_list": lambda: query().values_list("token"),
    "flat values_list": lambda: query().values_list("token", flat=True),
    "named values_list": lambda: query().values_list("name", "token", named=True),
    "only": lambda: query().only("token"),
    "only of a relation": lambda: query().select_related("boss").only("name", "boss__token"),
    "order_by": lambda: query().order_by("token"),
    "order_by descending": lambda: query().order_by("-boss__token"),
    "order_by F": lambda: query().order_by(F("token").desc()),
    "distinct": lambda: query().distinct("token"),
    "in_bulk": lambda: query().in_bulk(["x"], field="token"),
    "in_bulk by field_name": lambda: query().in_bulk(["x"], field_name="token"),
    "latest": lambda: query().latest("token"),
    "earliest": lambda: query().earliest("-token"),
    "subquery": lambda: query().annotate(x=Subquery(query().values("token")[:1])),
    "outer reference": lambda: query().filter(Exists(query().filter(name=OuterRef("token")))),
    "update by F": lambda: query().update(name=F("token")),
    "group": lambda: query().values("token").annotate(n=Count("id")),
    "join": lambda: query().join(CTE(query().values("name")), name="token"),
    "carry": lambda: CTE.recursive(query(), "staff", carry={"x": ("token", F("token"))}),
    "where of a recursion": lambda: CTE.recursive(query(), "staff", where=Q(token="x")),
    "search": lambda: query().filter(SearchVector("token").matches("x")),
    "search lookup": lambda: query().filter(token__search="x"),
    "FilterSet": lambda: filter_set(fields={"token": ["exact"]}),
    "order of a FilterSet": lambda: filter_set(ordering=("token",)),
    "filter_from": lambda: filter_from(query(), {"token": "x"}, allow={"token": ["exact"]}),
    "get_or_create": lambda: query().get_or_create(token="x"),
    "update_or_create": lambda: query().update_or_create(token="x"),
}

READ_TIMES: dict[str, Callable[[], Any]] = {
    "dates": lambda: query().dates("token_day", "month"),
    "datetimes": lambda: query().datetimes("token_time", "month"),
    "date part": lambda: query().filter(token_day__year=2026),
}

TYPED: dict[str, tuple[Callable[[], Any], Any]] = {
    "filter": (lambda: query().filter(Account.token == "s").count(), 1),
    "exclude": (lambda: query().exclude(Account.token.startswith("s")).count(), 1),
    "relation": (lambda: query().filter(Account.boss.to.token == "s").count(), 1),
    "annotate": (lambda: query().annotate(x=Account.token).get(name="n").x, "s"),
    "alias": (lambda: query().alias(x=Account.token).filter(x="s").count(), 1),
    "function": (lambda: query().annotate(x=Lower(Account.token)).get(name="n").x, "s"),
    "aggregate": (lambda: query().aggregate(x=Max(Account.token)), {"x": "t"}),
    "values": (
        lambda: list(query().values(Account.token).order_by("id")),
        [{"token": "s"}, {"token": "t"}],
    ),
    "values_list": (
        lambda: sorted(query().values_list(Account.token, flat=True)),
        ["s", "t"],
    ),
    "only": (lambda: query().only(Account.token).get(name="n").is_loaded("name"), False),
    "order_by": (lambda: [a.name for a in query().order_by(Account.token.desc())], ["m", "n"]),
    "distinct": (lambda: len(query().distinct(Account.token)), 2),
    "in_bulk": (lambda: list(query().in_bulk(["s"], field=Account.token)), ["s"]),
    "latest": (lambda: query().latest(Account.token).name, "m"),
    "earliest": (lambda: query().earliest(Account.token).name, "n"),
    "dates": (
        lambda: list(query().dates(Account.token_day, "month")),
        [dt.date(2026, 5, 1)],
    ),
    "datetimes": (
        lambda: list(query().datetimes(Account.token_time, "year")),
        [dt.datetime(2026, 1, 1, tzinfo=dt.UTC)],
    ),
    "search": (lambda: query().filter(Account.token.contains("s")).count(), 1),
}


@pytest.fixture
def accounts(empty: Any) -> Any:
    create_all(Account)
    moment = dt.datetime(2026, 5, 3, tzinfo=dt.UTC)
    first = Account.objects.create(name="n", token="s", token_day=moment.date(), token_time=moment)
    Account.objects.create(name="m", token="t", boss=first)
    return empty


@pytest.mark.parametrize("name", READ)
def test_a_string_never_reads_a_sensitive_field(accounts: Any, name: str) -> None:
    with pytest.raises(FieldError, match=REFUSED):
        READ[name]()


@pytest.mark.parametrize("name", READ_TIMES)
def test_a_string_never_reads_a_sensitive_time(accounts: Any, name: str) -> None:
    with pytest.raises(FieldError, match=r"leads to a sensitive field; .* Account\.token_"):
        READ_TIMES[name]()


@pytest.mark.parametrize("name", TYPED)
def test_the_typed_column_reads_it(accounts: Any, name: str) -> None:
    call, wanted = TYPED[name]
    assert call() == wanted


def test_what_is_read_without_names_has_no_sensitive_field(accounts: Any) -> None:
    assert sorted(query().values()[0]) == ["boss_id", "id", "name"]
    assert len(query().values_list()[0]) == 3
    assert "2026" not in repr(Account.objects.get(name="n"))


def test_writing_and_leaving_out_take_strings(accounts: Any) -> None:
    found = query().defer("token").get(name="n")
    assert not found.is_loaded("token")
    assert found.load("token").token == "s"
    found.refresh_from_db(fields=["token"])
    found.token = "u"
    found.save(update_fields=["token"])
    found.assign({"token": "v"}, fields=["token"])
    assert Account.objects.bulk_update([found], ["token"]) == 1
    assert query().filter(name="n").update(token="w") == 1
    unique: dict[str, Any] = {"update_conflicts": ["name"], "unique_fields": ["token"]}
    Account.objects.bulk_create([account(token="w", name="o")], **unique)
    assert [a.name for a in query().order_by(Account.token)] == ["m", "o"]


def test_a_field_may_be_declared_not_to_be_sensitive(db: Any) -> None:
    class Lexeme(Model):
        token = fields.CharField(max_length=20, sensitive=False)
        names: ClassVar[tuple[str, ...]] = ("token",)

    sql = Lexeme.objects.filter(token="x").order_by("token").values("token").explain_sql()
    assert "token" in sql


def test_relations_of_other_models_are_guarded_too(db: Any) -> None:
    from orm_models import Post

    for build in (
        lambda: Post.objects.values("author__password"),
        lambda: Post.objects.filter(author__password="x"),
        lambda: Post.objects.order_by("author__password"),
        lambda: Author.objects.values_list("posts__editor__password", flat=True),
    ):
        with pytest.raises(FieldError, match=r"use the typed expression Author\.password"):
            build()
