"""Verbs that watch and change a crawl. `steer` sends commands to one machine, `steer_nodes` to a cluster."""
