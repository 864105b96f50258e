CREATE TABLE events (
    seq   INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms INTEGER NOT NULL,
    kind  TEXT    NOT NULL,
    body  BLOB    NOT NULL
) STRICT;

-- What happened stays.
CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_are_not_removed BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

CREATE TABLE devices (
    id          INTEGER PRIMARY KEY,
    key         BLOB    NOT NULL UNIQUE CHECK (length(key) = 32),
    name        TEXT    NOT NULL,
    standing    TEXT    NOT NULL CHECK (standing IN ('active', 'quarantined', 'revoked')),
    enrolled_ms INTEGER NOT NULL,
    seen_ms     INTEGER NOT NULL,
    compared     INTEGER, -- better (1), same (0) or worse (-1) than alone, if the owner lets the board say
    route_decile INTEGER
) STRICT;

CREATE TABLE tokens (
    digest       BLOB    PRIMARY KEY CHECK (length(digest) = 32),
    name         TEXT,
    not_after_ms INTEGER NOT NULL,
    used_by      BLOB    CHECK (length(used_by) = 32)
) STRICT, WITHOUT ROWID;

CREATE TABLE refusals (
    device INTEGER NOT NULL REFERENCES devices (id),
    reject TEXT    NOT NULL,
    count  INTEGER NOT NULL,
    PRIMARY KEY (device, reject)
) STRICT, WITHOUT ROWID;
