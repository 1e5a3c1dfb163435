"""What happens, written down and read back: events, progress, reports, audit."""
