"""The catalog of a crawl in Cassandra: `--catalog cassandra://host:port,…/keyspace`."""
