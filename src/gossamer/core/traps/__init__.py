"""Which URLs make themselves? `shapes` looks at one URL, `calendar` at dates, `watch` at what the pages of a pattern
bring.

`novelty` measures a window of pages, `url_patterns` names kinds of URLs, `quarantine` is the row that a verdict leaves,
`soft_not_found` finds hosts that answer "not found" with 200.
"""
