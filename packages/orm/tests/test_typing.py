"""The file of typing expectations is real code: its models can be defined and its queries built."""

from __future__ import annotations

import inspect

import orm_typing


def test_the_expectations_import_and_their_expressions_can_be_built() -> None:
    assert orm_typing.Book._meta.fields["writer"].known_target is orm_typing.Writer._meta  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - a foreign key
    query = orm_typing.Book.objects.filter(orm_typing.Book.title == "x").long()
    assert isinstance(query, orm_typing.BookQuery)
    assert inspect.iscoroutinefunction(orm_typing.decorated)
