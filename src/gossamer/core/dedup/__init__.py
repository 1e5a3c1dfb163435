"""Which pages say nearly the same? Signatures of texts, and an index of them. Pure."""
