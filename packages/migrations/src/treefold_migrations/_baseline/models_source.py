"""The source of models as a developer would write them for these tables, to be edited from then on.

Every name and text of the database passes `quoted` or `sanitize_for_comment`: nothing of it becomes
code.

Example, three tables of SQLite, and the class of the first one:

    CREATE TABLE book (
        id INTEGER PRIMARY KEY,
        title VARCHAR(80) COLLATE NOCASE NOT NULL,
        pages INTEGER DEFAULT 0 NOT NULL,
        size INTEGER GENERATED ALWAYS AS (pages * 2),
        CONSTRAINT few_pages CHECK (pages < 9000)
    );
    CREATE TABLE label (id INTEGER PRIMARY KEY, word VARCHAR(20) NOT NULL);
    CREATE TABLE book_label (
        book_id INTEGER NOT NULL REFERENCES book (id),
        label_id INTEGER NOT NULL REFERENCES label (id),
        PRIMARY KEY (book_id, label_id)
    )

    class Book(Model):
        ...

        # Left to the database: the column size INTEGER (generated as pages * 2)
        # Left to the database: column title: COLLATE NOCASE

        id = fields.BigAutoField()
        title = fields.CharField(max_length=80)
        pages = fields.BigIntegerField(db_default=0)
        labels = fields.ManyToManyField("Label", related_name="books", through="BookLabel")

        class Meta:
            table = "book"
            constraints = (
                CheckConstraint(SchemaSQL("{} < 9000", "pages"), name="few_pages"),
            )

`book_label` does nothing but connect rows of two tables: it is a model, and `labels` leads over it.
Both are named by text, because their classes come later in the module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from treefold_migrations._baseline.drafts import LEFT_OUT, FieldDraft, TableDraft
from treefold_migrations._baseline.names import derive_field_name, sanitize_for_comment
from treefold_migrations._baseline.reading import Database
from treefold_migrations._detect.models import sort_by_references
from treefold_migrations._files.layout import WIDTH, format_expression
from treefold_migrations._files.writing import render_imports
from treefold_migrations._inspect.compare import MISSING
from treefold_migrations._state.renaming import retarget_foreign_key
from treefold_orm import fields as orm_fields
from treefold_orm.schema import DEFAULT, Imports, is_foreign_key, quoted, source_of

_REFERENCES = (orm_fields.ForeignKey, orm_fields.OneToOneField)
_TYPES = {"integer": "int", "bigint": "int", "text": "str"}
_HEAD = '"""The tables of a database that was there before, as `migrations baseline` found them."""'


def render_models_source(drafts: Sequence[TableDraft], database: Database) -> str:
    """Return the source of the module of models."""
    return _ModelsModuleWriter(drafts, database).render_module()


@dataclass(slots=True)
class _ManyToManyPlan:
    """A many-to-many field, and the model between."""

    name: str
    target: str
    through: str
    related_name: str


@dataclass(slots=True)
class _Plan:
    """The parts of a model beside its table: the `related_name` of each foreign key that needs one,
    and many-to-many fields.
    """

    related: dict[str, str] = field(default_factory=dict[str, str])
    many_to_many: list[_ManyToManyPlan] = field(default_factory=list[_ManyToManyPlan])


class _ModelsModuleWriter:
    def __init__(self, drafts: Sequence[TableDraft], database: Database) -> None:
        self._drafts = {draft.name: draft for draft in drafts}
        self._database = database
        self._imports = Imports()
        self._imports.name("treefold_orm", "Model")
        self._imports.name("treefold_orm", "fields")
        self._written: set[str] = set()
        self._plans: dict[str, _Plan] = {name: _Plan() for name in self._drafts}
        self._attributes = {
            name: {a for f in d.fields.values() for a in (f.name, f"{f.name}_id")}
            for name, d in self._drafts.items()
        }
        self._plan_relations()

    def render_module(self) -> str:
        order = sort_by_references(draft.to_table_state() for draft in self._drafts.values())
        classes: list[str] = []
        # a class that is written already can be named as such, others by their text
        for name in order:
            classes.append(self._render_class(self._drafts[name]))
            self._written.add(self._drafts[name].model)
        left = list_unmodeled_objects(self._database)
        notes = [f"# Left to the database: {sanitize_for_comment(item)}" for item in left]
        head = [_HEAD, "", "from __future__ import annotations", "", render_imports(self._imports)]
        if notes:
            head += ["", *notes]
        return "\n".join(head) + "\n\n\n" + "\n\n\n".join(classes) + "\n"

    # -- relations --------------------------------------------------------------------------------

    def _list_references(self, draft: TableDraft) -> list[tuple[FieldDraft, str]]:
        return [(f, f.kind.args[0]) for f in draft.fields.values() if f.kind.type in _REFERENCES]

    def _plan_relations(self) -> None:
        for draft in self._drafts.values():
            for made, target in self._list_references(draft):
                one = made.kind.type is orm_fields.OneToOneField
                usual = draft.model.lower() if one else f"{draft.model.lower()}_set"
                longer = f"{draft.model.lower()}_{made.name}" + ("" if one else "_set")
                related_name = self._claim_free_attribute_or_plus(target, usual, longer)
                if related_name != usual:
                    self._plans[draft.name].related[made.name] = related_name
        for draft in self._drafts.values():
            self._plan_field_for_join_table(draft)

    def _claim_free_attribute_or_plus(self, table: str, *names: str) -> str:
        """The first name that a table's model has no attribute of, `+` where there is none."""
        taken = self._attributes[table]
        for name in names:
            if name not in taken and derive_field_name(name, ()) == name:
                taken.add(name)
                return name
        return "+"

    def _plan_field_for_join_table(self, draft: TableDraft) -> None:
        """Recognize a table that does nothing but connect rows of two others."""
        references = self._list_references(draft)
        own = {made.name for made, _ in references}
        others = [f for f in draft.fields.values() if f.name not in own]
        generated = all(
            f.kind.type in (orm_fields.AutoField, orm_fields.BigAutoField) for f in others
        )
        if len(references) != 2 or not generated or not draft.managed or draft.notes:
            return
        (first, source), (second, target) = references
        # of a table with itself the direction would be a guess
        if first.options.get("null") or second.options.get("null") or source == target:
            return
        # a pair that may occur twice is no relation between two rows: such a table is a list of its
        # own
        if not (set(draft.primary_key) == own or self._is_unique_together(draft, own)):
            return
        forward = self._claim_free_attribute_or_plus(
            source, f"{_derive_field_name_from_model(self._drafts[target].model)}s"
        )
        back = self._claim_free_attribute_or_plus(
            target, f"{_derive_field_name_from_model(self._drafts[source].model)}s"
        )
        if forward != "+":
            plan = _ManyToManyPlan(forward, self._drafts[target].model, draft.model, back)
            self._plans[source].many_to_many.append(plan)

    def _is_unique_together(self, draft: TableDraft, names: set[str]) -> bool:
        chosen = (p.chosen_proposal for p in draft.parts if p.chosen_proposal is not LEFT_OUT)
        return any(
            set(getattr(c, "fields", ())) == names and getattr(c, "condition", 0) is None
            for c in chosen
            if type(c).__name__ == "UniqueConstraint"
        )

    # -- classes ----------------------------------------------------------------------------------

    def _render_class(self, draft: TableDraft) -> str:
        plan = self._plans[draft.name]
        what = f"A row of {sanitize_for_comment(draft.name)}".rstrip(".")
        if not draft.managed:
            what = f"{what}, a {draft.kind} that migrations leave alone"
        lines = [f"class {draft.model}(Model):", f'    """{what}."""', ""]
        left = (*draft.notes, *describe_omitted_parts(draft))
        notes = [f"Left to the database: {item}" for item in left]
        if draft.stand_in:
            notes += [
                f"No primary key is known: {draft.stand_in} stands for it, so choose the field",
                "whose values are unique",
            ]
        lines += [f"    # {line}" for line in notes] + [""] * bool(notes)
        if draft.primary_key:
            self._imports.name("treefold_orm", "CompositePrimaryKey")
            names = ", ".join(map(quoted, draft.primary_key))
            lines.append(f"    pk = CompositePrimaryKey({names})")
        for made in draft.fields.values():
            lines += self._render_field(draft, made, plan.related.get(made.name, ""))
        lines += [self._render_many_to_many(planned) for planned in plan.many_to_many]
        return "\n".join([*lines, "", *self._render_meta(draft)])

    def _render_field(
        self, draft: TableDraft, field_draft: FieldDraft, related_name: str
    ) -> list[str]:
        kind = ""  # SQLite keeps a type only as text; the migration has that
        if self._database.engine == "postgres":
            types = {d.name: d.found for d in draft.as_found if d.kind == "type"}
            kind = types.get(field_draft.column.name, "")
        built = field_draft.make_field()
        lines: list[str] = []
        if is_foreign_key(built):
            target = self._drafts[str(built.to)]
            built = retarget_foreign_key(built, target.model)
            text = self._render_declaration_source(built)
            if target.model in self._written:
                text = text.replace(f"({quoted(target.model)}", f"({target.model}", 1)
            if related_name:
                text = f"{text[:-1]}, related_name={quoted(related_name)})"
            known = _TYPES.get(field_draft.plain.make_field().internal, "")
            if known:
                null = " | None" if field_draft.options.get("null") else ""
                lines = [f"    {field_draft.name}_id: {known}{null}"]
        else:
            text = self._render_declaration_source(built)
        written = format_expression(text, indent=4, prefix_width=len(field_draft.name) + 3)
        comment = f"  # {sanitize_for_comment(kind)} in the database" if kind else ""
        line = f"    {field_draft.name} = {written}"
        # behind a field of several lines the comment would stand beside its closing bracket
        if comment and ("\n" in written or len(line + comment) > WIDTH):
            return [f"    {comment.strip()}", line, *lines]
        return [f"{line}{comment}", *lines]

    def _render_declaration_source(self, part: object) -> str:
        text, imports = source_of(part)  # pyright: ignore[reportArgumentType] - a part of a state
        self._imports.update(imports)
        return text

    def _render_many_to_many(self, plan: _ManyToManyPlan) -> str:
        target = plan.target if plan.target in self._written else quoted(plan.target)
        text = (
            f"fields.ManyToManyField({target}, related_name={quoted(plan.related_name)}, "
            f"through={quoted(plan.through)})"
        )
        written = format_expression(text, indent=4, prefix_width=len(plan.name) + 3)
        return f"    {plan.name} = {written}"

    def _render_meta(self, draft: TableDraft) -> list[str]:
        lines = ["    class Meta:", f"        table = {quoted(draft.name)}"]
        if draft.database != DEFAULT:
            lines.append(f"        database = {quoted(draft.database)}")
        if not draft.managed:
            return [*lines, "        managed = False"]
        for option in ("constraint", "index"):
            proposals = [p.chosen_proposal for p in draft.parts if p.kind == option]
            chosen = [proposal for proposal in proposals if proposal is not LEFT_OUT]
            if chosen:
                name = "constraints" if option == "constraint" else "indexes"
                text = f"({', '.join(map(self._render_declaration_source, chosen))},)"
                shown = format_expression(text, indent=8, prefix_width=len(name) + 3)
                lines.append(f"        {name} = {shown}")
        return lines


def describe_omitted_parts(draft: TableDraft) -> list[str]:
    """Return the parts of the database that the model leaves out, in words for its reader.

    In the example of this module, `as_found` of `book` is

        ("table", "book", "not STRICT")
        ("type", "title", "VARCHAR(80)")
        ("column", "title", "COLLATE NOCASE")
        ("column", "size", "INTEGER")
        ("check", "ck_book_title", "missing")

    of which only the third one is left out and not said elsewhere.
    """
    in_model = {part.name for part in draft.parts if part.chosen_proposal is not LEFT_OUT}
    omitted: list[str] = []
    for kind, name, found in draft.as_found:
        # a field, or the comment beside it, says how its column keeps values
        if kind in {"type", "identity", "nullability"}:
            continue
        # a column without a field: the notes of the draft have it, with the reason
        if kind == "column" and name not in draft.fields:
            continue
        # the model has the part, but no Meta can say that rows may break it
        if name in in_model and found != "NOT VALID":
            continue
        # what the database lacks is not left to it: a part of the model, or such as STRICT
        if found == MISSING or found.startswith("not "):
            continue
        omitted.append(sanitize_for_comment(_describe_found_part(kind, name, found)))
    return omitted


def _derive_field_name_from_model(model: str) -> str:
    return derive_field_name(model, ())


def _describe_found_part(kind: str, name: str, definition: str) -> str:
    if kind == "table":
        return f"the table is {definition}"
    return f"{kind} {name}: {definition}" if name else f"{kind}: {definition}"


def list_unmodeled_objects(database: Database) -> list[str]:
    """Return the tables and views without a model; other schemas do not count."""
    views = {view.name for view in database.views if view.columns}
    others = database.catalog.others
    return [f"{o.kind} {o.name}" for o in others if o.name not in views and o.kind != "schema"]
