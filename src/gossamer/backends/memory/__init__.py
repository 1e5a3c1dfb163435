"""In memory only: for the simulator and for tests."""
