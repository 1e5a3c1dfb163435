"""A synthetic web, and crawls in virtual time."""
