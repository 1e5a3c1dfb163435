"""Who schedules and who writes the ledger? `hub.Hub` alone; what changes a running crawl is a command in its queue."""
