"""What else gets the pages of a crawl, before or beside its commits? `sinks` and `catalogs` are the tables of what can
be named.
"""
