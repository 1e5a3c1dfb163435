"""Which of the links that were found are queued?

`intake.Intake` screens each: scope, traps, first pass, introductions.
"""
