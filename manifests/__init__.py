"""Ready workloads: one folder each, filled in for every team and pool group."""
