"""Verbs that write what was crawled for other programs."""
