"""Reading a crawl folder, also while its crawl runs: status, the history of a URL, audit, verification, report."""
