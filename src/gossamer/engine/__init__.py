"""What happens in one crawl? `crawl.Crawl` takes facts and returns tasks; the ledger and the events follow. Pure, as
the core.

`admission` (how links become queued URLs), `results` (what follows from an answer), `revisit` (when again), `shards`
(what an owner loads and forgets), `cluster` (what a node sends and gets). Knows the ports, and nothing that implements
them.
"""
