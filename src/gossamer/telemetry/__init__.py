"""What a crawl shows of itself while it runs and at its end: the event file, progress, the summary."""
