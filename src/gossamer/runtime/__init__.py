"""How does a crawl really run: processes, sockets, files, clocks? `session.session` is one run.

`hub` (schedules, commits), `workers` (fetch, parse, archive), `recovery` (what a dead process left), `stores` (what
else gets the pages), `watch` (what the operator must know), `cluster` (a node's lease and shards), `ranks`.
"""
