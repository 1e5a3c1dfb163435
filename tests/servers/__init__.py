"""Real servers, started by the tests on free loopback ports, with their data in a temporary folder."""
