"""What the user asked for: defaults, file, environment, flags."""
