"""What do several backends need of a client library? Its errors as ours, and sessions with Cassandra."""
