-- The native store of ack-memory: one SQLite database a scope, `<root>/scopes/<name>/memory.db`.
--
-- ack-memory reads it, and only `ack-memory import` writes to it. Programs that capture or curate memories write it. Only `memories.id` and `memories.title` are required of a store; every other table and column may be absent, and
-- what is absent is absent in the answers. Columns that are not named here are ignored.
--
-- Conventions
--   instants   TEXT, RFC 3339 in UTC ('2026-01-04T10:00:00Z'); a number of seconds or milliseconds since 1970 is read too
--   lists      TEXT, a JSON array of strings ('["a","b"]')
--   journal    any journal mode; a writer that stays open should use WAL

-- One learning a row.
CREATE TABLE memories (
  -- Public id, unique in the scope and stable for good, for instance 'ack_abc123_2026-01-04_001'.
  id            TEXT PRIMARY KEY NOT NULL,
  -- The project it was learned in. Compared without regard to case; '-', '_' and blanks are the same.
  project       TEXT,
  -- The session it was learned in: `sessions.id`.
  session       TEXT,
  -- The writing program's own id of that session, where it has another one.
  session_id    TEXT,
  -- Calendar day of the session, 'YYYY-MM-DD'.
  date          TEXT,
  -- Kind of learning; free, for instance decision, bugfix, gotcha, pattern, discovery, howto, preference.
  type          TEXT,
  -- The learning in one line. Searched with the greatest weight.
  title         TEXT NOT NULL,
  -- One line of context.
  subtitle      TEXT,
  -- Short statements that can be checked: a list.
  facts         TEXT,
  -- Tags: a list.
  concepts      TEXT,
  -- Paths of the files it is about, relative to the repository: a list.
  files         TEXT,
  -- The long text: symptom, cause, fix.
  narrative     TEXT,
  -- Curation: staging (not reviewed) -> approved -> promoted (lifted into a shared scope), or rejected.
  -- In any case, blanks around it ignored. An agent sees approved and promoted memories unless it asks for others; rejected
  -- ones are never served. NULL and blanks count as staging. Any other word, a number or a BLOB is never served. In a store
  -- without this column `unreviewed` in scope.toml says what its rows count as.
  status        TEXT DEFAULT 'staging',
  -- The writer's confidence, 0 to 1.
  confidence    REAL,
  -- When and by whom it was reviewed.
  reviewed_at   TEXT,
  reviewed_by   TEXT,
  -- The id of the memory that replaces this one. While that one may be served, this one is left out of search results,
  -- counted as hidden, and still found by its id. Where it is not in the store, was rejected or is left out by the status
  -- asked for, this one stays, and so does each memory of a circle.
  superseded_by TEXT,
  -- When it was written, and when it was last changed.
  created_at    TEXT,
  updated_at    TEXT,
  -- The day after which its author expects it to be out of date, 'YYYY-MM-DD'. It is served all
  -- the same, with a mark.
  stale_after   TEXT
);

CREATE INDEX memories_by_status  ON memories (status);
CREATE INDEX memories_by_created ON memories (created_at);

-- One session a row: shown with the memories that name it, and by get_context where at least one of them may be shown.
CREATE TABLE sessions (
  id          TEXT PRIMARY KEY NOT NULL,
  project     TEXT,
  title       TEXT,
  started_at  TEXT,
  ended_at    TEXT
);

-- What a session was about, in a few sentences. Nobody reviews it: shown where `overviews` in scope.toml says so, or where every
-- memory of the store is approved.
CREATE TABLE overviews (
  project     TEXT,
  session     TEXT NOT NULL,
  content     TEXT NOT NULL,
  created_at  TEXT
);

CREATE INDEX overviews_by_session ON overviews (session);

-- What was decided about a memory, one line a decision.
CREATE TABLE curation_log (
  memory_id        TEXT NOT NULL,
  -- stage, approve, promote, reject, supersede, import; free.
  action           TEXT NOT NULL,
  previous_status  TEXT,
  new_status       TEXT,
  reason           TEXT,
  actor            TEXT,
  created_at       TEXT
);

CREATE INDEX curation_log_by_memory ON curation_log (memory_id);

-- Provenance between memories of this scope.
CREATE TABLE memory_links (
  from_id     TEXT NOT NULL,
  to_id       TEXT NOT NULL,
  -- derived_from, supersedes, contradicts, related; free. `from_id` derives from, supersedes or contradicts `to_id`.
  -- A link hides nothing: `memories.superseded_by` does.
  kind        TEXT NOT NULL,
  -- Who made the link.
  source      TEXT,
  -- Its confidence, 0 to 1.
  confidence  REAL,
  PRIMARY KEY (from_id, to_id, kind)
);

CREATE INDEX memory_links_by_target ON memory_links (to_id);
