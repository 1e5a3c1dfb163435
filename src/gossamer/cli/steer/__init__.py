"""Verbs that watch and change a crawl, the latter by a command to `gossamer.control`."""
