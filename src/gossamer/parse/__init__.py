"""What is in an answer: type, charset, links, facts and text. CPU only."""
