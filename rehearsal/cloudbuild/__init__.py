"""Cloud Build, faked: its files are read, checked and run; triggers and approvals are resources and builds.

Imports rehearsal.google and rehearsal.terraform.
"""
