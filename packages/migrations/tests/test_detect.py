"""Questions, answers and refusals of the detection, beyond the table of pairs."""

from __future__ import annotations

import contextvars
from pathlib import Path
from typing import Any

import pytest
from pairs import answers_of, state_of

import treefold_migrations as m
from treefold_migrations import Ambiguous, DataLossRefused, MigrationError, StateError
from treefold_migrations._detect.answers import Answers, Question
from treefold_migrations._detect.differences import detect_operations
from treefold_migrations._detect.models import build_models_state
from treefold_migrations._state.schema_state import is_same_state
from treefold_orm import Model, fields, registry
from treefold_orm.schema import Imports

N = "n = fields.IntegerField()"


def change(before: str, after: str, flags: str = "", **options: Any) -> list[str]:
    answers = answers_of(flags)
    answers.ask = options.get("ask")
    found = detect_operations(state_of(before), state_of(after), answers)
    return [operation.source(Imports()) for operation in found]


def test_a_likely_rename_is_asked_with_the_best_candidate_first() -> None:
    with pytest.raises(Ambiguous) as raised:
        change(
            "title = fields.TextField()",
            "head = fields.TextField(null=True)\ntitles = fields.TextField()",
        )
    assert raised.value.flags == (
        "--rename thing.title:titles",
        "--rename thing.title:head",
        "--drop thing.title",
    )
    assert str(raised.value) == (
        "The field thing.title is gone, and there are new ones: titles (96% alike), head (51% "
        "alike); was it renamed? Give one of: --rename thing.title:titles, or --rename "
        "thing.title:head, or --drop thing.title"
    )


def test_a_likely_rename_of_a_table_is_asked() -> None:
    body = "class {}(Model):\n    name = fields.TextField()\n    n = fields.IntegerField()\n"
    with pytest.raises(Ambiguous) as raised:
        change(body.format("Author"), body.format("Writer"))
    assert raised.value.flags == ("--rename author:writer", "--drop author")


def test_an_asker_gets_the_question_and_answers_with_a_flag() -> None:
    asked: list[Question] = []

    def ask(question: Question) -> str:
        asked.append(question)
        return question.flags[0] if question.kind != "fill" else "7"

    found = change(N, "m = fields.IntegerField()\nx = fields.BigIntegerField()", ask=ask)
    assert found == [
        'RenameField("thing", "n", "m")',
        'AddField("thing", "x", fields.BigIntegerField(), fill=7)',
    ]
    assert [(q.kind, q.subject, q.candidates) for q in asked] == [
        ("field", "thing.n", ("m",)),
        ("fill", "thing.x", ()),
    ]


def answer_yes(question: Question) -> str:
    return "yes"


def test_an_answer_that_is_no_flag_is_refused() -> None:
    with pytest.raises(MigrationError, match=r"An answer must be one of .*, got 'yes'"):
        change(N, "m = fields.IntegerField()", ask=answer_yes)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--rename thing.n", r"--rename must be such as post\.title:headline, got 'thing\.n'"),
        ("--rename thing:a.b", "--rename must be such as post:article or"),
        ("--fill thing.n", r"--fill must be such as post\.slug:text, got 'thing\.n'"),
        ("--rename thing.n:x", r"thing\.x must be new in the models; new ones are thing\.m"),
        (
            "--drop thing.n --fill thing.m:x",
            r"--fill thing\.m:x does not fit the field: takes a whole",
        ),
        ("--drop thing.n --fill thing.m:'1", "must close its quotes|does not fit the field"),
        ("--drop thing.n --fill thing.m:1 --drop other", "--drop other does not fit: there is"),
        ("--rename other:x --rename thing.n:m", "--rename other does not fit"),
        ("--rename thing.n:m --fill thing.m:3", r"--fill thing\.m does not fit"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(flags: str, message: str) -> None:
    with pytest.raises(MigrationError, match=message):
        change(N, "m = fields.IntegerField()", flags)


def test_data_is_lost_only_where_the_caller_agrees() -> None:
    with pytest.raises(DataLossRefused) as raised:
        change(f"{N}\nt = fields.TextField()", N)
    assert str(raised.value) == (
        "The data of thing.t would be lost; give --allow-destructive or --drop thing.t to agree "
        "to it"
    )
    lossy = "n = fields.{}"
    with pytest.raises(DataLossRefused, match=r"thing\.n would be lost; give --allow-destructive"):
        change(lossy.format("FloatField()"), lossy.format("IntegerField()"))


def test_a_refusal_shows_how_to_say_that_it_was_a_rename() -> None:
    with pytest.raises(DataLossRefused, match=r", or --rename thing\.alpha:NEW for what has"):
        change("alpha = fields.DateField()", "x = fields.IntegerField(null=True)")


def test_a_key_that_moves_to_another_field_is_refused() -> None:
    with pytest.raises(StateError, match="The primary key of thing moves to other fields"):
        change(
            "code = fields.CharField(max_length=5)",
            "code = fields.CharField(max_length=5, primary_key=True)",
            "--allow-destructive --drop thing.id",
        )


@pytest.mark.parametrize(
    ("field", "text", "source"),
    [
        ("TextField()", "", '""'),
        ("TextField()", '"a b"', '"a b"'),
        ("FloatField()", "1.5", "1.5"),
        ("DateField()", "2020-02-29", "datetime.date(2020, 2, 29)"),
        ("TimeField()", "07:30", "datetime.time(7, 30)"),
        ("DateTimeField()", "now", "Now()"),
        ("JSONField()", "[1]", "[1]"),
        ("SlugField()", "a-b", '"a-b"'),
        ('EnumField(enum.Enum("E", {"A": "a"}))', "a", '"a"'),
    ],
)
def test_a_fill_is_read_as_the_field_reads_text(field: str, text: str, source: str) -> None:
    answers = Answers.from_flags(fill=[f"thing.x:{text}"])
    (found,) = detect_operations(state_of(N), state_of(f"{N}\nx = fields.{field}"), answers)
    assert found.source(Imports()).endswith(f"fill={source})")


def test_a_default_that_differs_each_time_must_be_answered() -> None:
    with pytest.raises(Ambiguous, match=r"thing\.x must have a value in rows that exist"):
        change(N, f"{N}\nx = fields.UUIDField(default=uuid.uuid4)")


def test_a_default_that_fails_must_be_answered() -> None:
    with pytest.raises(Ambiguous, match=r"thing\.x must have a value in rows that exist"):
        change(N, f"{N}\nx = fields.IntegerField(default=lambda: 1 // 0)")


def test_unmanaged_tables_may_go_without_a_question() -> None:
    legacy = f"class Legacy(Model):\n    {N}\n    class Meta:\n        managed = False\n"
    other = "class Other(Model):\n    t = fields.TextField()\n"
    assert change(legacy + other, other) == ['DropTable("legacy")']


def test_two_models_of_one_table_are_refused() -> None:
    body = f'class A(Model):\n    {N}\n    class Meta:\n        table = "t"\n'
    with pytest.raises(StateError, match="The models A and B share the table 't'"):
        state_of(body + body.replace("class A", "class B"))


def test_a_managed_model_goes_before_an_unmanaged_one_of_its_table() -> None:
    body = f'class A(Model):\n    {N}\n    class Meta:\n        table = "t"\n'
    shadow = body.replace("class A", "class B") + "        managed = False\n"
    for both in (body + shadow, shadow + body):
        assert state_of(both).table("t").model == "A"


def test_models_of_this_application_are_taken_without_naming_them(tmp_path: Path) -> None:
    class Detected(Model):
        _space = f"{tmp_path.resolve()}/"
        word = fields.SlugField()

    state_of(N)

    def found() -> list[str]:
        registry.enter_application_folder(tmp_path)
        return list(build_models_state().tables)

    names = contextvars.copy_context().run(found)
    assert "detected" in names
    assert "thing" not in names  # a model of another application
    assert list(build_models_state([Detected._meta]).tables) == ["detected"]


def test_from_nothing_to_everything_and_back() -> None:
    body = (
        "class A(Model):\n    b = fields.ForeignKey('B', null=True)\n"
        "class B(Model):\n    c = fields.ForeignKey('C', null=True)\n"
        "    n = fields.IntegerField()\n"
        "    class Meta:\n        constraints = [UniqueConstraint('c', 'n')]\n"
        "class C(Model):\n    a = fields.ForeignKey('A', null=True)\n"
    )
    everything = state_of(body)
    state = m.SchemaState()
    for operation in detect_operations(state, everything):
        state = operation.apply(state)
    assert is_same_state(state, everything)
    for operation in detect_operations(state, m.SchemaState(), answers_of("--allow-destructive")):
        state = operation.apply(state)
    assert is_same_state(state, m.SchemaState())


TAGS = """
class Tag(Model):
    n = fields.IntegerField()
class Book(Model):
    title = fields.TextField()
    {}
"""
LABELS = "tags = fields.ManyToManyField(Tag)"


def test_a_many_to_many_is_dropped_by_its_field() -> None:
    before, after = TAGS.format(LABELS), TAGS.format("pass")
    with pytest.raises(
        DataLossRefused, match=r"data of book\.tags would.*--drop book\.tags to agree"
    ):
        change(before, after)
    for name in ("book.tags", "book_tags"):
        assert change(before, after, f"--drop {name}") == ['DropTable("book_tags")']
    with pytest.raises(MigrationError, match=r"--drop book\.tags does not fit"):
        change(before, before, "--drop book.tags")
    with pytest.raises(
        MigrationError, match=r"--drop book\.tag does not fit.*mean --drop book\.tags"
    ):
        change(before, after, "--drop book.tag --drop book.tags")


def test_an_answer_to_no_question_names_the_nearest_one() -> None:
    with pytest.raises(MigrationError, match=r"did you mean --fill thing\.count\?"):
        change(
            N, f"{N}\ncount = fields.IntegerField()", "--fill thing.cuont:1 --fill thing.count:1"
        )
    with pytest.raises(MigrationError, match=r"did you mean --drop thing\.title\?"):
        change(f"{N}\ntitle = fields.TextField()", N, "--drop thing.titel --drop thing.title")
