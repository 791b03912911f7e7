"""Create table organisation.
Create table tag.
Create table user.
Create table integration.
Create table accesstoken.
Create table ticket.
Create table export.
Create table ticket_tags.
Create table comment.
Create table auditentry.
Run SQL: -- Tables of jobs, PgQueuer, 1960cdf50ef0 CREATE TYPE pgqueu....
"""

from treefold_migrations import CreateTable, Migration, RunSQL
from treefold_orm import Index, UniqueConstraint, fields

migration = Migration(
    after=[],
    operations=[
        CreateTable(
            "organisation",
            {
                "id": fields.BigAutoField(),
                "name": fields.CharField(max_length=120, unique=True),
                "plan": fields.CharField(
                    max_length=10,
                    default="basic",
                    choices=[("basic", "Basic"), ("premium", "Premium")],
                ),
                "note": fields.TextField(max_length=2000, null=True),
                "created_at": fields.DateTimeField(auto_now_add=True, db_index=True),
            },
            model="Organisation",
        ),
        CreateTable(
            "tag",
            {
                "id": fields.BigAutoField(),
                "name": fields.SlugField(max_length=40, unique=True),
            },
            model="Tag",
        ),
        CreateTable(
            "user",
            {
                "id": fields.BigAutoField(),
                "name": fields.CharField(max_length=120, db_index=True),
                "email": fields.EmailField(unique=True),
                "password_hash": fields.CharField(max_length=200),
                "role": fields.CharField(
                    max_length=10,
                    choices=[
                        ("admin", "Admin"),
                        ("agent", "Agent"),
                        ("customer", "Customer"),
                    ],
                ),
                "active": fields.BooleanField(default=True),
                "organisation": fields.ForeignKey("organisation", "CASCADE", null=True),
            },
            model="User",
        ),
        CreateTable(
            "integration",
            {
                "id": fields.BigAutoField(),
                "organisation": fields.ForeignKey("organisation", "CASCADE"),
                "name": fields.CharField(max_length=120),
                "digest": fields.CharField(max_length=64, unique=True),
            },
            model="Integration",
        ),
        CreateTable(
            "accesstoken",
            {
                "id": fields.BigAutoField(),
                "user": fields.ForeignKey("user", "CASCADE"),
                "label": fields.CharField(max_length=60),
                "digest": fields.CharField(max_length=64, unique=True),
            },
            model="AccessToken",
        ),
        CreateTable(
            "ticket",
            {
                "id": fields.BigAutoField(),
                "subject": fields.CharField(max_length=200),
                "text": fields.TextField(max_length=20000),
                "status": fields.CharField(
                    max_length=10,
                    default="open",
                    choices=[
                        ("open", "Open"),
                        ("waiting", "Waiting"),
                        ("solved", "Solved"),
                        ("closed", "Closed"),
                    ],
                ),
                "priority": fields.SmallIntegerField(
                    default=2,
                    choices=[(1, "Low"), (2, "Normal"), (3, "High"), (4, "Urgent")],
                ),
                "due_on": fields.DateField(null=True, db_index=True),
                "organisation": fields.ForeignKey("organisation", "CASCADE"),
                "requester": fields.ForeignKey("user", "SET_NULL", null=True),
                "assignee": fields.ForeignKey("user", "SET_NULL", null=True),
                "created_at": fields.DateTimeField(auto_now_add=True),
                "updated_at": fields.DateTimeField(auto_now=True),
                "answered_at": fields.DateTimeField(null=True),
            },
            model="Ticket",
            indexes=[
                Index("created_at", "id"),
                Index("updated_at", "id"),
                Index("priority", "id"),
                Index("status", "updated_at"),
                Index("subject", "id"),
            ],
        ),
        CreateTable(
            "export",
            {
                "id": fields.BigAutoField(),
                "filters": fields.JSONField(),
                "rows": fields.IntegerField(null=True),
                "file": fields.CharField(max_length=500, null=True),
                "owner": fields.ForeignKey("user", "CASCADE"),
                "created_at": fields.DateTimeField(auto_now_add=True, db_index=True),
            },
            model="Export",
        ),
        CreateTable(
            "ticket_tags",
            {
                "id": fields.BigAutoField(),
                "ticket": fields.ForeignKey("ticket", "CASCADE"),
                "tag": fields.ForeignKey("tag", "CASCADE"),
            },
            model="Ticket_tags",
            constraints=[UniqueConstraint("ticket", "tag")],
        ),
        CreateTable(
            "comment",
            {
                "id": fields.BigAutoField(),
                "ticket": fields.ForeignKey("ticket", "CASCADE"),
                "author": fields.ForeignKey("user", "SET_NULL", null=True),
                "author_name": fields.CharField(max_length=120),
                "text": fields.TextField(max_length=20000),
                "internal": fields.BooleanField(default=False),
                "created_at": fields.DateTimeField(auto_now_add=True),
            },
            model="Comment",
            indexes=[Index("ticket", "internal", "created_at")],
        ),
        CreateTable(
            "auditentry",
            {
                "id": fields.BigAutoField(),
                "ticket": fields.ForeignKey("ticket", "CASCADE"),
                "actor": fields.CharField(max_length=200, db_index=True),
                "action": fields.CharField(max_length=40, db_index=True),
                "changed": fields.JSONField(),
                "created_at": fields.DateTimeField(auto_now_add=True, db_index=True),
            },
            model="AuditEntry",
        ),
        RunSQL(
            {
                "postgres": """-- Tables of jobs, PgQueuer, 1960cdf50ef0
CREATE TYPE pgqueuer_status AS ENUM ('queued', 'picked', 'successful', 'exception', 'canceled', 'deleted', 'failed');

CREATE TABLE pgqueuer (
    id bigserial NOT NULL PRIMARY KEY,
    priority integer NOT NULL,
    queue_manager_id uuid,
    created timestamp with time zone NOT NULL DEFAULT now(),
    updated timestamp with time zone NOT NULL DEFAULT now(),
    heartbeat timestamp with time zone NOT NULL DEFAULT now(),
    execute_after timestamp with time zone NOT NULL DEFAULT now(),
    status pgqueuer_status NOT NULL,
    entrypoint text NOT NULL,
    dedupe_key text,
    payload bytea,
    headers jsonb,
    attempts integer NOT NULL DEFAULT 0,
    slot bigint
);

CREATE TABLE pgqueuer_log (
    id bigint GENERATED BY DEFAULT AS IDENTITY NOT NULL PRIMARY KEY,
    created timestamp with time zone NOT NULL DEFAULT now(),
    job_id bigint NOT NULL,
    status pgqueuer_status NOT NULL,
    priority integer NOT NULL,
    entrypoint text NOT NULL,
    traceback jsonb,
    aggregated boolean DEFAULT false
);

CREATE TABLE pgqueuer_schedules (
    id bigserial NOT NULL PRIMARY KEY,
    expression text NOT NULL,
    entrypoint text NOT NULL,
    heartbeat timestamp with time zone NOT NULL DEFAULT now(),
    created timestamp with time zone NOT NULL DEFAULT now(),
    updated timestamp with time zone NOT NULL DEFAULT now(),
    next_run timestamp with time zone NOT NULL DEFAULT now(),
    last_run timestamp with time zone,
    status pgqueuer_status DEFAULT 'queued'::pgqueuer_status,
    UNIQUE (expression, entrypoint)
);

CREATE TABLE pgqueuer_statistics (
    id bigserial NOT NULL PRIMARY KEY,
    created timestamp with time zone NOT NULL DEFAULT date_trunc('sec'::text, now()),
    count bigint NOT NULL,
    priority integer NOT NULL,
    status pgqueuer_status NOT NULL,
    entrypoint text NOT NULL
);

CREATE INDEX pgqueuer_ep_ea_idx ON pgqueuer USING btree (entrypoint, execute_after) WHERE (status = 'queued'::pgqueuer_status);

CREATE INDEX pgqueuer_ep_prio_id_idx ON pgqueuer USING btree (entrypoint, priority DESC, id) WHERE (status = 'queued'::pgqueuer_status);

CREATE INDEX pgqueuer_log_created ON pgqueuer_log USING btree (created);

CREATE INDEX pgqueuer_log_job_id_status ON pgqueuer_log USING btree (job_id, created DESC);

CREATE INDEX pgqueuer_log_not_aggregated ON pgqueuer_log USING btree ((1)) WHERE (NOT aggregated);

CREATE INDEX pgqueuer_log_status ON pgqueuer_log USING btree (status);

CREATE INDEX pgqueuer_picked_heartbeat_idx ON pgqueuer USING btree (heartbeat) WHERE (status = 'picked'::pgqueuer_status);

CREATE UNIQUE INDEX pgqueuer_picked_slot_idx ON pgqueuer USING btree (entrypoint, slot) WHERE ((status = 'picked'::pgqueuer_status) AND (slot IS NOT NULL));

CREATE INDEX pgqueuer_priority_id_id1_idx ON pgqueuer USING btree (priority, id DESC) INCLUDE (id) WHERE (status = 'queued'::pgqueuer_status);

CREATE INDEX pgqueuer_queue_manager_id_idx ON pgqueuer USING btree (queue_manager_id) WHERE (queue_manager_id IS NOT NULL);

CREATE UNIQUE INDEX pgqueuer_statistics_unique_count ON pgqueuer_statistics USING btree (priority, date_trunc('sec'::text, timezone('UTC'::text, created)), status, entrypoint);

CREATE UNIQUE INDEX pgqueuer_unique_dedupe_key ON pgqueuer USING btree (dedupe_key) WHERE ((status = ANY (ARRAY['queued'::pgqueuer_status, 'picked'::pgqueuer_status])) AND (dedupe_key IS NOT NULL));

CREATE INDEX pgqueuer_updated_id_id1_idx ON pgqueuer USING btree (updated, id DESC) INCLUDE (id) WHERE (status = 'picked'::pgqueuer_status);

CREATE FUNCTION fn_pgqueuer_changed() RETURNS TRIGGER AS $$
DECLARE
    to_emit BOOLEAN := false;  -- Flag to decide whether to emit a notification
BEGIN
    -- Check operation type and set the emit flag accordingly
    IF TG_OP = 'UPDATE' AND OLD IS DISTINCT FROM NEW THEN
        to_emit := true;
    ELSIF TG_OP = 'DELETE' THEN
        to_emit := true;
    ELSIF TG_OP = 'INSERT' THEN
        to_emit := true;
    ELSIF TG_OP = 'TRUNCATE' THEN
        to_emit := true;
    END IF;

    -- Perform notification if the emit flag is set
    IF to_emit THEN
        PERFORM pg_notify(
            'ch_pgqueuer',
            json_build_object(
                'channel', 'ch_pgqueuer',
                'operation', lower(TG_OP),
                'sent_at', NOW(),
                'table', TG_TABLE_NAME,
                'type', 'table_changed_event'
            )::text
        );
    END IF;

    -- Return appropriate value based on the operation
    IF TG_OP IN ('INSERT', 'UPDATE') THEN
        RETURN NEW;
    ELSIF TG_OP = 'DELETE' THEN
        RETURN OLD;
    ELSE
        RETURN NULL; -- For TRUNCATE and other non-row-specific contexts
    END IF;

END;
$$ LANGUAGE plpgsql;

CREATE TRIGGER tg_pgqueuer_changed
AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON pgqueuer
EXECUTE FUNCTION fn_pgqueuer_changed();""",
            },
            reverse_sql={
                "postgres": """DROP TRIGGER IF EXISTS tg_pgqueuer_changed ON pgqueuer;
DROP FUNCTION IF EXISTS fn_pgqueuer_changed;
DROP TABLE IF EXISTS pgqueuer;
DROP TABLE IF EXISTS pgqueuer_log;
DROP TABLE IF EXISTS pgqueuer_schedules;
DROP TABLE IF EXISTS pgqueuer_statistics;
DROP TYPE IF EXISTS pgqueuer_status;
DROP TYPE IF EXISTS pgqueuer_statistics_status;""",
            },
            tables=[
                "pgqueuer",
                "pgqueuer_log",
                "pgqueuer_schedules",
                "pgqueuer_statistics",
            ],
        ),
    ],
)
