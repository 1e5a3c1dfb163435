"""Copies a stopped crawl between a folder and a ledger that nodes share."""
