"""What does one node of a cluster own, send and read? `node.Node`, for the real agent and the simulated one alike."""
