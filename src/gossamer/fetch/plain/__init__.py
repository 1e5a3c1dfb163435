"""HTTP/1.1 over plain TCP, by our own client: `engine` holds connections, `transfer` is one answer."""
