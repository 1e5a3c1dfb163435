"""Which pages have nearly the same text? Signatures of texts, and an index of them. Pure."""
