"""The crawl itself: the core's decisions, the ledger that remembers them, and the events that tell of them."""
