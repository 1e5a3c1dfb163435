"""Webs that behave badly, or look as if they did: for tests and benchmarks."""
