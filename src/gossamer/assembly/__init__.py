"""How do settings become objects? `run` builds a run by pure functions, `engine` its engine, `access` what requests
need.
"""
