"""How does a crawl behave over a web that does not exist? `web` is that web, `driver` and `cluster` crawl it in
virtual time.

Used by `demo`, `chaos`, `simulate`, the tests and the benchmarks.
"""
