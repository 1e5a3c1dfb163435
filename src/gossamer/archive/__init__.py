"""Stored answers: WARC files, their index, their recovery and their verification."""
