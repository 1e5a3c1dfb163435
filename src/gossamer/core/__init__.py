"""What decides: pure objects, told facts and asked for decisions. No I/O, no clock."""
