"""A cluster's API server, played: what it serves, what it refuses, and what Kueue's and JobSet's controllers would do."""
