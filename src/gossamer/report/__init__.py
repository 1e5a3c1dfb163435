"""What does a crawl's report show? `build` gathers it, `html` and `terminal` draw it."""
