"""Reading a crawl folder, also while its crawl runs: status, the life of a URL, audit, verification, report."""
