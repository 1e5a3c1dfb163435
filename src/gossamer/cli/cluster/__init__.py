"""Verbs of crawls on many machines, and what they share: joining, `node`, `ledger`."""
