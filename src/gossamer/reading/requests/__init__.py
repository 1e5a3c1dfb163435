"""Which requests did a crawl make, and did it respect robots.txt and its pace? `audit` decides from events alone."""
