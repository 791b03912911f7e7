"""The rules of lint as data: the subject of each, its lock, and the safe way.

Rules are looked for in `lint_operation_effect` (typed operations) and `lint_sql` (SQL of the
author's own).
"""

from __future__ import annotations

from dataclasses import dataclass

EXCLUSIVE = "ACCESS EXCLUSIVE"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; `lock` is PostgreSQL's, and empty where no lock is the problem."""

    name: str
    problem: str
    safe_way: str
    lock: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One place that breaks a rule; `operation_index` counts the operations of the migration."""

    rule: str
    message: str
    lock: str
    safe_way: str
    operation_index: int

    def __str__(self) -> str:
        lock = f" It takes {self.lock}." if self.lock else ""
        return f"{self.rule}: {self.message}.{lock} {self.safe_way}."


def _index_by_name(*rules: Rule) -> dict[str, Rule]:
    return {rule.name: rule for rule in rules}


RULES = _index_by_name(
    # destroys data
    Rule(
        "drop-table",
        "drops a table with its rows",
        "Stop using the table in one release and drop it in the next; keep a backup",
        EXCLUSIVE,
    ),
    Rule(
        "drop-column",
        "drops a column with its values",
        "Remove the field from the code in one release and drop the column in the next",
        EXCLUSIVE,
    ),
    Rule(
        "truncate-cascade",
        "empties every table that points to this one, too",
        "Name each table to empty, without CASCADE",
        EXCLUSIVE,
    ),
    Rule(
        "narrow-type",
        "does not hold every value of the type before; rows that do not fit stop the migration",
        "Find and change such rows first, in a migration of their own",
        EXCLUSIVE,
    ),
    Rule(
        "rename-or-drop",
        "is dropped while one like it is added, which loses the values if a rename was meant",
        "Use RenameField to keep the values; if both are meant, add first and drop in a later "
        "migration",
    ),
    Rule(
        "remove-enum-value",
        "removes a value that rows may hold",
        "Update such rows in an earlier migration, and stop writing the value before that",
    ),
    Rule(
        "unknown-part",
        "`migrate` refuses this, since a part that RunSQL made is in no model",
        "Add it to the model and to the state with SeparateStateAndDatabase, drop it with RunSQL "
        "before, or agree to its loss with SetOptions(table, as_found=[]) in this migration",
    ),
    # breaks the running release
    Rule(
        "rename-column",
        "the running release still uses the old name",
        "Add a field, write both, copy, switch reads, and drop the old one later; or rename the "
        "field only and keep the column with db_column",
        EXCLUSIVE,
    ),
    Rule(
        "rename-table",
        "the running release still uses the old name",
        "Rename the model only and keep the table with Meta.table",
        EXCLUSIVE,
    ),
    Rule(
        "rename-schema",
        "the running release still looks in the old schema",
        "Create the new schema and move tables while nothing uses them",
        EXCLUSIVE,
    ),
    Rule(
        "required-without-default",
        "the running release inserts rows without this column, which then fail",
        "Apply it with --phase expand, which gives the column a default or NULL until contract; or "
        "give the field a db_default",
        EXCLUSIVE,
    ),
    Rule(
        "drop-column-in-use",
        "the models still name the column",
        "Remove the field from the models first, and drop the column after the rollout",
        EXCLUSIVE,
    ),
    Rule(
        "drop-default-in-use",
        "the running release leaves the value to the database, and its inserts fail without it",
        "Apply it with --phase expand, which keeps the default until contract; or write the value "
        "in the code in one release and drop the default in the next",
        EXCLUSIVE,
    ),
    Rule(
        "new-unique",
        "the running release may write equal rows, which then fail",
        "Release the code that writes them once only, and add the constraint after the rollout",
        EXCLUSIVE,
    ),
    Rule(
        "new-check",
        "the running release may write rows that break it, which then fail",
        "Release the code that keeps to it, and add the constraint after the rollout",
        EXCLUSIVE,
    ),
    Rule(
        "new-not-null",
        "the running release may write NULL, which then fails",
        "Release the code that writes a value, and require it after the rollout",
        EXCLUSIVE,
    ),
    Rule(
        "new-reference",
        "the running release may write values that refer to no row, which then fail",
        "Release the code that writes keys of rows, and add the reference after the rollout",
        "SHARE ROW EXCLUSIVE",
    ),
    # locks or rewrites
    Rule(
        "type-rewrites",
        "rewrites the table and its indexes under a lock that stops reads and writes",
        "Add a column of the new type, copy in batches, and switch over",
        EXCLUSIVE,
    ),
    Rule(
        "volatile-default",
        "a default that differs for each row rewrites the table",
        "Add the column without a default, set the default, then fill existing rows in batches",
        EXCLUSIVE,
    ),
    Rule(
        "stored-generated-column",
        "computes and writes each row under a lock that stops reads and writes",
        "Add a plain column, fill it in batches, and keep it up to date in the code",
        EXCLUSIVE,
    ),
    Rule(
        "identity-on-filled-table",
        "numbers every row under a lock that stops reads and writes",
        "Add a plain column, number rows in batches, and attach the identity afterwards",
        EXCLUSIVE,
    ),
    Rule(
        "primary-key-index",
        "builds the index of the primary key under a lock that stops reads and writes",
        "Keep the key, and add a unique constraint; or change it while nothing uses the table",
        EXCLUSIVE,
    ),
    Rule(
        "index-not-concurrent",
        "builds an index under a lock that stops writes",
        "Use AddIndex, or CREATE INDEX CONCURRENTLY outside a transaction",
        "SHARE",
    ),
    Rule(
        "drop-index-not-concurrent",
        "waits for every query of the table, and stops those that come after it",
        "Use DropIndex, or DROP INDEX CONCURRENTLY outside a transaction",
        EXCLUSIVE,
    ),
    Rule(
        "reindex",
        "rebuilds an index under a lock that stops writes",
        "Use REINDEX ... CONCURRENTLY outside a transaction",
        EXCLUSIVE,
    ),
    Rule(
        "unique-without-index",
        "builds the index of the constraint under a lock that stops reads and writes",
        "Use AddConstraint, or add it USING INDEX after the index was built concurrently",
        EXCLUSIVE,
    ),
    Rule(
        "foreign-key-not-valid",
        "tests every row under locks that stop writes to both tables",
        "Use AddField, or add the key NOT VALID and validate it afterwards",
        "SHARE ROW EXCLUSIVE",
    ),
    Rule(
        "check-not-valid",
        "tests every row under a lock that stops reads and writes",
        "Use AddConstraint, or add the check NOT VALID and validate it afterwards",
        EXCLUSIVE,
    ),
    Rule(
        "set-not-null",
        "reads every row under a lock that stops reads and writes",
        "Use AlterField, or validate a check (column IS NOT NULL) first",
        EXCLUSIVE,
    ),
    Rule(
        "exclusion-constraint",
        "builds an index under a lock that stops reads and writes; PostgreSQL has no other way",
        "Add it while the table is small, or in a maintenance window",
        EXCLUSIVE,
    ),
    Rule(
        "partition-detach",
        "detaches a partition under a lock that stops reads and writes of the whole table",
        "Use DETACH PARTITION ... CONCURRENTLY outside a transaction",
        EXCLUSIVE,
    ),
    # unsafe running
    Rule(
        "no-lock-timeout",
        "switches the lock timeout off, so that a waiting statement stops all others behind it",
        "Leave lock_timeout to the runner, which tries again",
    ),
    Rule(
        "no-statement-timeout",
        "switches the statement timeout off",
        "Leave statement_timeout to the runner, or set a bound of your own",
    ),
    Rule(
        "concurrent-in-transaction",
        "CONCURRENTLY cannot run inside a transaction",
        "Give the statement a RunSQL of its own with transactional=False",
    ),
    Rule(
        "data-in-schema-transaction",
        "changes rows in the transaction of a schema change, whose locks are held meanwhile",
        "Move the change of data to a migration of its own",
    ),
    Rule(
        "unbatched-backfill",
        "changes all rows in one statement, which locks each of them until the end",
        "Change rows in batches, with RunPython and its batches",
    ),
    # hygiene
    Rule(
        "long-identifier",
        "has more than 63 bytes, of which PostgreSQL keeps the first only; two names can collide",
        "Give it a shorter name",
    ),
    Rule(
        "timestamp-without-zone",
        "holds no zone, so that the same moment can be read as another one",
        "Use a DateTimeField in UTC (timestamptz)",
    ),
    Rule(
        "narrow-key",
        "counts to 2,147,483,647 only, and inserts fail after that",
        "Use a BigAutoField",
    ),
    Rule(
        "missing-foreign-key-index",
        "has no index, so that each delete of a target reads the whole table",
        "Leave db_index=True, or begin an index with the column",
    ),
    Rule(
        "irreversible-data",
        "has no reverse, so that rollback stops here",
        "Give backward= or reverse_sql=; RunPython.noop or an empty text reverses nothing",
    ),
)


def make_finding(
    rule: str, subject: str, operation_index: int, *, include_lock: bool = True
) -> Finding:
    """Make a finding; `subject` is the table, column or statement it is about."""
    known = RULES[rule]
    lock = known.lock if include_lock else ""
    return Finding(rule, f"{subject}: {known.problem}", lock, known.safe_way, operation_index)
