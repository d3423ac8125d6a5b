"""JobSet's rules."""
