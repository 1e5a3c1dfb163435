"""How is a running crawl, and what must its operator know? Figures, warnings, memory, a held event loop, errors of our
own.
"""
