"""When is a URL fetched again? `revisiting.Revisiting`, with the rules of `core/revisit` and the due index of the
ledger.
"""
