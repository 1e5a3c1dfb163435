"""Which values does everything else speak of? Records, exchanges, state, events, figures, commands, errors. No
behaviour, no I/O.

`records` (what crosses a process or a queue) imports only `errors`; `state` (what survives a restart), `exchanges` (a
request and its answer), `events`, `figures` (the numbers that are shown) and `commands` (what an operator can tell a
crawl) build on it.
"""
