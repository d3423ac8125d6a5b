"""Ready workloads: a folder for each, filled in for every team and pool group. Imports environment/ and vocabulary/."""
