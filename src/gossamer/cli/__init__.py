"""The command line: a module per verb, in a folder per heading of `gossamer --help`.

A verb has its options and what it prints; what it prints is read by `reading` and `handover`. `verbs` is the table.
"""
