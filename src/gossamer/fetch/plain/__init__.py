"""HTTP/1.1 over plain TCP, by our own client: `client` holds connections, `transfer` is one answer."""
