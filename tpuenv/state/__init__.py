"""The state bucket: the bucket itself, versions of states, locks, marks of applies. Imports google/."""
