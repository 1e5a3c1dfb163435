"""What does the package need of Python, its compiler and its memory? Imported by everything, imports nothing of ours.

`interpreter` (is this Python fit?), `kernel` (the compiled parts, or None), `expressions` (compiled when first used),
`collector` (garbage), `failpoints` (where tests let something fail).
"""
