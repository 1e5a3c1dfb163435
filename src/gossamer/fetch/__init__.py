"""From a host name to the bytes of an answer: DNS, addresses, HTTP, content codings."""
