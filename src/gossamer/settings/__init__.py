"""The user's settings: defaults, file, environment, flags."""
