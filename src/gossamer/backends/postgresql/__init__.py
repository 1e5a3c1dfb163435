"""The ledger that nodes share, on PostgreSQL."""
