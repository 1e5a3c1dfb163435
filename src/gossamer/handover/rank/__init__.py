"""How important is a host by its links? Computed from a whole crawl, for `gossamer rank`."""
