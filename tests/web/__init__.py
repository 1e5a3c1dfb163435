"""The page of a crawl and its API."""
