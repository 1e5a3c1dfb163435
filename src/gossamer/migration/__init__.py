"""How does a stopped crawl move between a folder and a ledger that nodes share, with nothing lost? `run` is the entry
point.
"""
