"""What is known of a crawl, while it runs or after? `folder` reads a crawl folder, `cluster` a shared ledger; both
give a `view`.

`why` (the life of a URL), `requests` (the events, the audit); `status`, `host_view`, `pace_view` for what verbs and
the dashboard show.
"""
