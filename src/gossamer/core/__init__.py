"""The decisions: pure objects that accept facts and return decisions. No I/O, no clock."""
