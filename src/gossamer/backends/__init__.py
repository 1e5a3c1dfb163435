"""A folder a technology, the same file names in each."""
