"""What a crawl reports while it runs and at its end: the event file, progress, the summary."""
