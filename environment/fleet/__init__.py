"""fleet.yaml: kinds of slice and teams, what their values may be, and the file."""
