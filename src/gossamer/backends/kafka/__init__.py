"""The shared ledger on Kafka and Cassandra: links travel through a topic, everything else is rows."""
