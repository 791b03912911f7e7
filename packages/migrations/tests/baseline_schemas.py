"""Unusual schemas for tests of baselines, for both databases or for one."""

from __future__ import annotations

BOTH = """
CREATE TABLE "class" ("def" INTEGER NOT NULL PRIMARY KEY, "import" VARCHAR(20) NOT NULL,
  "None" VARCHAR(5), "pk" INTEGER, "objects" INTEGER DEFAULT 3 NOT NULL, "save" TEXT,
  "fields" TEXT, "int" INTEGER, "_x_" INTEGER, "a__b" INTEGER, "2nd" INTEGER, "First Name" TEXT,
  "first_name" TEXT, "FIRST_NAME2" TEXT, "é" TEXT, "日本" TEXT, "-" INTEGER);
CREATE TABLE "a""b" ("x'; DROP TABLE y; --" INTEGER NOT NULL PRIMARY KEY, "{}" TEXT,
  "say @@" TEXT CHECK ("say @@"<> '"";{}--/*'), "percent %s" TEXT DEFAULT '{"a": "%s"}');
CREATE TABLE "x'; DROP TABLE y; --" ("id" INTEGER NOT NULL PRIMARY KEY,
  "a""b" INTEGER REFERENCES "a""b" ("x'; DROP TABLE y; --"));
CREATE TABLE employee ("employee_id" INTEGER NOT NULL PRIMARY KEY, "name" VARCHAR(40) NOT NULL,
  "boss_id" INTEGER REFERENCES employee ("employee_id") ON DELETE SET NULL,
  "deputy_id" INTEGER REFERENCES employee ("employee_id") ON DELETE CASCADE,
  CONSTRAINT not_own_boss CHECK (boss_id <> employee_id));
CREATE TABLE chicken ("id" INTEGER NOT NULL PRIMARY KEY, "egg_id" INTEGER);
CREATE TABLE egg ("id" INTEGER NOT NULL PRIMARY KEY,
  "chicken_id" INTEGER NOT NULL REFERENCES chicken ("id") ON DELETE CASCADE);
CREATE TABLE enrolment ("student" INTEGER NOT NULL, "course" VARCHAR(8) NOT NULL,
  "grade" NUMERIC(4, 2), PRIMARY KEY ("course", "student"));
CREATE TABLE exam ("id" INTEGER NOT NULL PRIMARY KEY, "student" INTEGER, "course" VARCHAR(8),
  FOREIGN KEY ("course", "student") REFERENCES enrolment ("course", "student"));
CREATE TABLE tag ("id" INTEGER NOT NULL PRIMARY KEY, "label" VARCHAR(30) NOT NULL UNIQUE);
CREATE TABLE post ("id" INTEGER NOT NULL PRIMARY KEY, "title" VARCHAR(100) NOT NULL,
  "state" VARCHAR(10) DEFAULT 'it''s' NOT NULL, "score" INTEGER DEFAULT -5, "rate" REAL DEFAULT 1.5,
  "gone" TIMESTAMP, CHECK (score BETWEEN -10 AND 10),
  CONSTRAINT states CHECK (state IN ('it''s', 'new') OR gone IS NOT NULL),
  CONSTRAINT odd CHECK (length(title) > 2 AND title <> 'x;y'));
CREATE INDEX live_posts ON post ("title", "score" DESC) WHERE gone IS NULL AND score > 0;
CREATE UNIQUE INDEX one_title ON post (lower(title));
CREATE UNIQUE INDEX one_live ON post ("title") WHERE gone IS NULL;
CREATE INDEX "ix; DROP" ON post ((score + 1));
CREATE TABLE post_tag ("post_id" INTEGER NOT NULL REFERENCES post ("id") ON DELETE CASCADE,
  "tag_id" INTEGER NOT NULL REFERENCES tag ("id"), PRIMARY KEY ("post_id", "tag_id"));
CREATE TABLE log ("at" TIMESTAMP, "line" TEXT);
CREATE VIEW titles AS SELECT id, title FROM post;
""".replace("@@", '""')

SQLITE = """
CREATE TABLE counter (id INTEGER PRIMARY KEY AUTOINCREMENT, n INT DEFAULT (1 + 1),
  at DATETIME DEFAULT CURRENT_TIMESTAMP, on_ BOOLEAN DEFAULT 1, raw BLOB DEFAULT X'00ff',
  untyped, anything ANY, money DECIMAL, twice INTEGER GENERATED ALWAYS AS (n * 2) STORED,
  name TEXT COLLATE NOCASE UNIQUE ON CONFLICT REPLACE);
CREATE TABLE "without" (code TEXT PRIMARY KEY, n INTEGER) WITHOUT ROWID;
CREATE TABLE strict_one (id INTEGER PRIMARY KEY, "when" TEXT NOT NULL, n INTEGER) STRICT;
CREATE TABLE [in brackets] (`in ticks` INTEGER PRIMARY KEY /* a comment */, b TEXT -- another
  CHECK (b /* inside */ <> 'c' -- of a check
  ));
CREATE TABLE touched (id INTEGER PRIMARY KEY, post INTEGER REFERENCES post
  ON UPDATE CASCADE DEFERRABLE INITIALLY DEFERRED, lost INTEGER REFERENCES nowhere (id));
CREATE INDEX by_name ON counter (name COLLATE BINARY DESC, n);
CREATE TRIGGER touch AFTER INSERT ON post BEGIN INSERT INTO log VALUES (NULL, NEW.title); END;
CREATE VIEW broken AS SELECT gone FROM no_such_table;
CREATE VIRTUAL TABLE words USING fts5 (text);
"""

POSTGRES = """
CREATE TABLE "Class" ("id" INTEGER NOT NULL PRIMARY KEY, "ID" INTEGER, "Id" INTEGER);
CREATE TYPE mood AS ENUM ('sad', 'it''s', 'a"b');
CREATE TYPE "Odd Type" AS ENUM ('x');
CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
CREATE DOMAIN citext_like AS text;
CREATE SEQUENCE numbers;
CREATE TABLE kinds (id bigserial PRIMARY KEY, small smallint DEFAULT 1, flag boolean DEFAULT true,
  ratio double precision, single real, exact numeric, fine numeric(12, 3), code character(3),
  word varchar, label citext_like, key uuid DEFAULT gen_random_uuid(), raw bytea, doc jsonb
  DEFAULT '{}' NOT NULL, old json, tags text[] DEFAULT '{}' NOT NULL, numbers integer[],
  feeling mood DEFAULT 'sad' NOT NULL, odd "Odd Type", many positive,
  made timestamptz DEFAULT now() NOT NULL, plain timestamp DEFAULT now(), day date
  DEFAULT CURRENT_DATE, at time, zoned timetz, took interval, precise timestamp(3),
  number integer DEFAULT nextval('numbers'), address inet, place point, words tsvector,
  double integer GENERATED ALWAYS AS (small * 2) STORED,
  always integer GENERATED ALWAYS AS IDENTITY, collated text COLLATE "C",
  password text CHECK (length(password) >= 8));
CREATE INDEX by_words ON kinds USING gin (words);
CREATE INDEX by_hash ON kinds USING hash (word);
CREATE INDEX by_doc ON kinds ((doc ->> 'a'), word varchar_pattern_ops) INCLUDE (small);
CREATE INDEX by_label ON kinds (lower(word) DESC NULLS LAST);
ALTER TABLE kinds ADD CONSTRAINT later CHECK (small < 100) NOT VALID;
CREATE TABLE booking (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, room integer NOT NULL,
  during tsrange, note text UNIQUE,
  code text UNIQUE DEFERRABLE INITIALLY DEFERRED,
  EXCLUDE USING gist (during WITH &&));
CREATE TABLE linked (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), booking_id integer UNIQUE
  REFERENCES booking ON UPDATE CASCADE ON DELETE RESTRICT DEFERRABLE INITIALLY DEFERRED,
  note text REFERENCES booking (note), word varchar(3) NULL UNIQUE NULLS NOT DISTINCT);
CREATE TABLE measure (at timestamptz NOT NULL, value integer) PARTITION BY RANGE (at);
CREATE TABLE measure_2026 PARTITION OF measure FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE MATERIALIZED VIEW counts AS SELECT room, count(*) FROM booking GROUP BY room;
ALTER TABLE chicken ADD CONSTRAINT chicken_egg FOREIGN KEY (egg_id) REFERENCES egg;
CREATE FUNCTION touched() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
CREATE TRIGGER touch BEFORE UPDATE ON post FOR EACH ROW EXECUTE FUNCTION touched();
"""
