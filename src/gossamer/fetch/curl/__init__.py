"""Everything that is not plain HTTP/1.1 (TLS, HTTP/2, proxies), by libcurl."""
