"""Which addresses does a host name have, and may they be connected to? `dns` asks, `guard` decides."""
