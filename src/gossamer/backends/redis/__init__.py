"""The shared ledger on Redis or Valkey."""
