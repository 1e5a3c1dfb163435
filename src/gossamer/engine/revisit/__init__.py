"""When is a URL fetched again? `revisiting.Revisits`, with the rules of `core/revisit` and the due index of the
ledger.
"""
