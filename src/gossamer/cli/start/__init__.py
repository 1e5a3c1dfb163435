"""Verbs that begin or continue a crawl: crawl, resume, init, plan."""
