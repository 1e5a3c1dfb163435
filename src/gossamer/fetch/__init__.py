"""How is one request made, and what came back? `http.HttpFetcher` chooses between `plain` and `curl`; bytes, time and
addresses are limited.
"""
