"""How do several nodes crawl in virtual time, with faults? The real engine over a shared ledger in memory."""
