"""Exports of a crawl for an indexer. Reads a crawl folder, also while its crawl runs."""
