"""What happened to a URL, from the link that led to it to the record that stores it? `life` is the entry point."""
