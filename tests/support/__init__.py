"""What tests and benchmarks share beyond fixtures."""
