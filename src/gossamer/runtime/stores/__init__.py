"""What else gets the pages of a crawl, before or beside its commits? Begin with `run_stores`; workers have `sinks`."""
