"""One machine: an embedded store in the crawl folder."""
