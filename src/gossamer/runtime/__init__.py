"""The real crawl: hub, workers, signals."""
