"""Where are ledgers, stores and catalogs? A folder per technology with the same file names; `registry` lists them."""
