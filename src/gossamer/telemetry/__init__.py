"""What does a crawl say while it runs and at its end: the event file, progress, the summary, metrics?"""
