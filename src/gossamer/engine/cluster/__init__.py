"""What does one node of a cluster own, send and read? `node.ClusterNode`, for the real agent and the simulated one."""
