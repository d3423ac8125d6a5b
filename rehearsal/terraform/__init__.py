"""Terraform's plugin protocol, and fake providers behind it."""
