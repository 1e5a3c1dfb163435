"""The dashboard of a crawl and its API: a process that reads a crawl and gives it commands; begin at `server`."""
