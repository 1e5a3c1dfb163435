"""How are pages written for others: JSONL, CSV, Parquet, WACZ, WET? `export` is the entry point."""
