"""How is one request made, and what came back? `http.Fetcher` chooses between `plain` and `curl`; bytes, time and
addresses are limited.
"""
