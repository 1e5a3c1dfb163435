"""Pages in MongoDB (`--store mongodb://host:port/database`), and catalogs (`--catalog`)."""
