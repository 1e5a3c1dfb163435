"""How is a crawl changed, whether it is running, stopped, or on many machines? `target` finds what obeys a command."""
