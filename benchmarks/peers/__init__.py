"""Gossamer beside other crawlers, on the same real pages, on one core each: `python -m benchmarks.peers`."""
