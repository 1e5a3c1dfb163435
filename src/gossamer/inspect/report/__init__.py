"""The report of a crawl: figures gathered in one pass each, rendered as JSON, HTML and text."""
