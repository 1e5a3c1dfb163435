"""Verbs that show what a crawl did: a URL, a host, what is missing or broken."""
