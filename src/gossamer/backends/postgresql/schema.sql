-- A crawl in PostgreSQL. Its tables are in a schema of its own, gossamer_NAME, which is the search path.
-- In `key` the first 12 bits are the shard, so a shard is a key range in every table of rows.

CREATE TABLE crawl (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    format integer NOT NULL,
    version bigint NOT NULL,
    body bytea NOT NULL,             -- MessagePack of CrawlRecord
    ended text NOT NULL DEFAULT '',
    pages bigint,                    -- how many may be fetched in all; NULL: there is no limit
    epoch bigint NOT NULL DEFAULT 0, -- the last one: microseconds, never less than before
    server_start timestamptz,        -- of the server that nodes last asked for addresses
    server_since timestamptz         -- since when it is another one than before; NULL: it is the first
);

-- Every incarnation of a node that ever joined. Who writes in its name locks its row.
CREATE TABLE nodes (
    name text,
    incarnation text,
    label text NOT NULL,
    lease_s double precision NOT NULL,
    lease_until timestamptz NOT NULL,
    is_over boolean NOT NULL DEFAULT false,
    commit bigint NOT NULL DEFAULT 0,
    pages bigint NOT NULL DEFAULT 0,
    domains bigint NOT NULL DEFAULT 0,
    totals json,
    status json,
    idle text NOT NULL DEFAULT '',
    idle_commit bigint NOT NULL DEFAULT 0,
    idle_version bigint NOT NULL DEFAULT 0,
    idle_domains bigint,
    claims jsonb NOT NULL DEFAULT '{}',
    answer bytea,                    -- to the last commit
    PRIMARY KEY (name, incarnation)
);

CREATE FUNCTION is_live(node nodes) RETURNS boolean LANGUAGE sql VOLATILE
    AS 'SELECT NOT node.is_over AND node.lease_until > clock_timestamp()';
CREATE FUNCTION now_s() RETURNS double precision LANGUAGE sql VOLATILE
    AS 'SELECT extract(epoch FROM clock_timestamp())::double precision';

CREATE TABLE owners (
    shard integer PRIMARY KEY,
    name text NOT NULL,
    incarnation text NOT NULL,
    epoch bigint NOT NULL
);
CREATE INDEX ON owners (name, incarnation);

-- Links on their way to the owner of a shard.
CREATE TABLE inbox (
    shard integer,
    position bigint GENERATED ALWAYS AS IDENTITY,
    id bytea NOT NULL,               -- names the commit that sent them
    links bytea NOT NULL,
    PRIMARY KEY (shard, position)
);

CREATE TABLE archives (node text, file text, length bigint NOT NULL, PRIMARY KEY (node, file));

-- Pages of all nodes: the first with a content, and signatures of those that repeat no other.
CREATE TABLE contents (hash bytea PRIMARY KEY, page bytea NOT NULL);
CREATE TABLE signatures (page bytea PRIMARY KEY, signature bytea NOT NULL);
CREATE TABLE bands (band bytea PRIMARY KEY, pages bytea NOT NULL) WITH (fillfactor = 80);

-- Addresses that several nodes contact: MessagePack of SharedAddress. Nothing here must last.
CREATE UNLOGGED TABLE addresses (address text PRIMARY KEY, state bytea NOT NULL) WITH (fillfactor = 50);

-- The readable tables of rows: names as text, records as JSON.
CREATE TABLE hosts (key bytea PRIMARY KEY, name text NOT NULL, record json NOT NULL) WITH (fillfactor = 70);
CREATE TABLE domains (key bytea PRIMARY KEY, name text NOT NULL, record json NOT NULL) WITH (fillfactor = 70);
CREATE TABLE robots (key bytea PRIMARY KEY, name text NOT NULL, record json NOT NULL, body bytea NOT NULL);
