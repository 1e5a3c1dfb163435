"""What is one run, from the opening of its folder to the report? `session.Session` is the entry point."""
