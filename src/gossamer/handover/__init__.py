"""The hand-over: what a crawl holds, as an indexer wants it. Reads a crawl folder, also while its crawl runs."""
