"""How does somebody else get what a crawl has? A folder per question: export, feed, search, findings, ranks."""
