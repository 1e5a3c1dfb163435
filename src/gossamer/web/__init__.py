"""The page of a crawl and its API: a process of its own that reads the crawl, and gives it commands. `server` is the
entry point.
"""
