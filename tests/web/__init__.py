"""The dashboard of a crawl and its API."""
