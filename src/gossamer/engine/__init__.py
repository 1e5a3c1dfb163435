"""The crawl itself: the core's decisions, the ledger that stores them, and the events that report them."""
