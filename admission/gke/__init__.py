"""GKE's rules."""
