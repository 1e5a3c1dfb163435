"""How important are domains by their links? Computed beside a crawl, and given to it."""
