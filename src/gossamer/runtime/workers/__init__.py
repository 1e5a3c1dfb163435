"""Who fetches, parses and archives?

`worker.Worker`, in the hub's process or in its own (`pool`, `process`, `channel`).
"""
