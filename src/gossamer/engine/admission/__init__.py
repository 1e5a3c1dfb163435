"""How do links become queued URLs, and how do they leave the queue unfetched?

`admission.Admission` is the entry point.
"""
