"""How answers are kept: WARC files, their index, their recovery and their check."""
