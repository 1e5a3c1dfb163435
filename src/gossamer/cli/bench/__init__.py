"""Verbs of the test bench: the synthetic web, chaos, virtual time, costs."""
