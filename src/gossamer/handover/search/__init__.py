"""Which pages say this? An index of the texts beside the crawl folder, and queries to it."""
