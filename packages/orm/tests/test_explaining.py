"""The databases' plans, as text and as a tree of the same shape."""

from __future__ import annotations

from typing import Any

import pytest
from orm_models import Order, Post, Tag

from treefold_orm import Count, FieldError, PlanStep, UnsupportedFeature


async def test_explain_returns_the_databases_plan_as_text(db: Any, half: Any) -> None:
    text = await half(Post.objects.filter(title="x")).explain()
    assert "t0" in text
    assert "'x'" not in Post.objects.filter(title="x").explain_sql()


async def test_the_tree_names_tables_and_what_is_read_from_end_to_end(db: Any, half: Any) -> None:
    plan = await half(Post.objects.filter(body="x")).explain(plan=True)
    assert type(plan) is PlanStep
    assert len(list(plan.walk())) >= 1
    assert plan.full_scans == ["post"]
    assert plan.indexes == []
    assert all(step.detail for step in plan.walk())


async def test_the_tree_names_indexes(db: Any, half: Any) -> None:
    for n in range(200):
        await half(Tag.objects).create(name=f"t{n}")
    await half(Order.objects).bulk_create([Order(number=n, shop="s", total=1) for n in range(2000)])
    by_name = await half(Tag.objects.filter(name="t5")).explain(plan=True)
    by_key = await half(Order.objects.filter(pk=5)).explain(plan=True)
    assert by_key.indexes in (["primary key"], ["order_pkey"])
    # few rows may be read as they are, and then no index is named
    assert (by_name.full_scans, len(by_name.indexes)) in (([], 1), (["tag"], 0))
    assert [step.table for step in by_key.walk() if step.table] == ["order"]


async def test_joins_have_steps_below_them(db: Any, half: Any) -> None:
    query = Post.objects.select_related("author").annotate(n=Count("comments"))
    plan = await half(query.order_by("title")).explain(plan=True)
    assert {"post", "author", "comment"} <= {step.table for step in plan.walk()}


async def test_analyze_measures_on_postgres(db: Any, half: Any, engine: str) -> None:
    await half(Tag.objects).create(name="a")
    if engine == "sqlite":
        with pytest.raises(UnsupportedFeature, match="needs PostgreSQL"):
            await half(Tag.objects).explain(analyze=True)
        return
    assert "actual" in await half(Tag.objects).explain(analyze=True)
    plan = await half(Tag.objects).explain(plan=True, analyze=True)
    assert plan.actual_rows == 1
    assert plan.milliseconds is not None
    assert plan.cost is not None


async def test_s_104_the_options_of_explain_are_closed(db: Any, half: Any) -> None:
    for text in ("FORMAT XML) SELECT 1; --", "yes"):
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            await half(Tag.objects).explain(**{text: True})
    for text in ("BUFFERS) SELECT 1; --", 1, None):
        with pytest.raises(FieldError, match=r"explain\(analyze=\) must be True or False, got"):
            await half(Tag.objects).explain(analyze=text)
