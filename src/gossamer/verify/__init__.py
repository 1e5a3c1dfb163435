"""Do ledger, archive, index, stores and catalogs agree, and how are they mended? Begin with `checks`."""
