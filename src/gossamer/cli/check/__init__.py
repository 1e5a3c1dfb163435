"""Verbs that prove something: the audit, the verification, this machine."""
