"""Kueue's rules."""
