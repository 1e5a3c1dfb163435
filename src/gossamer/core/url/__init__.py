"""What is a URL, which bytes identify it, and to which domain does it belong? Begin with `forms`; `identity` has the
ids.
"""
