-- What a crawl has fetched, in a schema of its own, which is the search path. The columns are declared in `ports/catalog_store`. See docs/stores.md.

CREATE TABLE catalog (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    format integer NOT NULL,
    crawl text NOT NULL,               -- its name: the crawl folder's, or the one in the ledger's URL
    created_at timestamptz NOT NULL DEFAULT now()
);

-- One row per visit that brought a page.
CREATE TABLE pages (
    {pages},
    crawl text NOT NULL,
    committed_at timestamptz NOT NULL, -- of the commit that wrote the row
    PRIMARY KEY (url_id, visit)
);
CREATE INDEX ON pages USING hash (url); -- a B-tree refuses what is longer than 2.7 kB
CREATE INDEX ON pages (host);
CREATE INDEX ON pages (fetched_at);
CREATE INDEX ON pages (status);
CREATE INDEX ON pages (content_hash);

-- URLs that failed for good. One that is queued again is no dead letter any more.
CREATE TABLE dead_letters (
    {dead_letters},
    committed_at timestamptz NOT NULL,
    PRIMARY KEY (url_id)
);
CREATE INDEX ON dead_letters (host);
CREATE INDEX ON dead_letters (outcome);

CREATE TABLE hosts (
    {hosts},
    committed_at timestamptz NOT NULL,
    PRIMARY KEY (name)
) WITH (fillfactor = 70);
CREATE INDEX ON hosts (domain);

CREATE VIEW latest_pages AS
    SELECT DISTINCT ON (url_id) * FROM pages ORDER BY url_id, visit DESC;

CREATE VIEW pages_per_host AS
    SELECT host, min(domain) AS domain, count(*) AS pages, sum(size) AS bytes, sum(words) AS words,
           count(*) FILTER (WHERE duplicate_of IS NOT NULL OR near_duplicate_of IS NOT NULL) AS duplicates,
           min(fetched_at) AS first_fetched_at, max(fetched_at) AS last_fetched_at
    FROM latest_pages GROUP BY host;

CREATE VIEW errors_by_outcome AS
    SELECT outcome, status, count(*) AS urls, count(DISTINCT host) AS hosts, min(url) AS example, max(at) AS last_at
    FROM dead_letters GROUP BY outcome, status;

CREATE VIEW duplicates AS
    SELECT page.url, CASE WHEN page.duplicate_of IS NULL THEN 'near' ELSE 'exact' END AS kind,
           original.url AS original, page.host, page.content_hash, page.fetched_at
    FROM latest_pages AS page
    LEFT JOIN LATERAL (
        SELECT url FROM pages WHERE url_id = coalesce(page.duplicate_of, page.near_duplicate_of)
        ORDER BY visit DESC LIMIT 1
    ) AS original ON true
    WHERE page.duplicate_of IS NOT NULL OR page.near_duplicate_of IS NOT NULL;

CREATE VIEW links_summary AS
    SELECT host, count(*) AS pages, sum(links) AS links, round(avg(links), 1) AS links_per_page,
           max(links) AS max_links, count(*) FILTER (WHERE links = 0) AS pages_without_links
    FROM latest_pages GROUP BY host;
