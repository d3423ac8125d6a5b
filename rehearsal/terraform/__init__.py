"""Terraform's plugin protocol and the fake providers behind it: schemas, plans, consistency, facts of the real ones.

Imports rehearsal.cloud; knows no resource type.
"""
