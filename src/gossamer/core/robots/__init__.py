"""May this URL be fetched according to robots.txt? `rules` reads a text and answers; `requests` says when one is asked
for.
"""
