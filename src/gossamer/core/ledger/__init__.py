"""What does a ledger store, under which keys and in which bytes?

The same in every store: `rows`, `tables`, `catalog`.
"""
