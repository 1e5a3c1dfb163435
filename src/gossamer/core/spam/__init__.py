"""What speaks for spam in a page, and in a host. Pure."""
