"""Nothing but memory: for the simulator and for tests."""
