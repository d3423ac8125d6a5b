"""The API server's rules."""
