"""What is decided: which URL next, when, by which rule. Facts go in, decisions come out; no I/O, no clock, no random
numbers.

One room per decision: `url` (what a URL is), `frontier` (which one next), `politeness` and `robots` (when, and whether
at all), `links` and `traps` (which links are queued), `revisit` (when again), `dedup` and `spam` (what a page is
worth), `cluster` (which node), `ledger` (what is stored), `content` (what headers say). Imports only `model` and
`foundation`.
"""
