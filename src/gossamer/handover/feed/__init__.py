"""How do pages reach others as they come?

`feed` from a folder, `node_feed` from a cluster, `topic_feed` as messages.
"""
