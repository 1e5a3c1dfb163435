"""What is in an answer: type, charset, links, facts and text? `dispatch` is the entry point. CPU only."""
