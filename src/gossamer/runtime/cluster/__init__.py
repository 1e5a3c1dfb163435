"""How does a crawl keep its place in a cluster?

`node_agent` renews the lease, takes and releases shards, brings links.
"""
