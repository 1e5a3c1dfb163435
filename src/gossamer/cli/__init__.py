"""The command line: a module per verb, with its options and what it prints. What it prints is read by `reading` and
`handover`.
"""
