"""Which URLs do feeds and sitemaps name, and when did they change? Both on `bounded_xml`."""
