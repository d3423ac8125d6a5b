"""A cluster's API server, played: what it serves and refuses, and what Kueue's and JobSet's controllers would do."""
