"""The `tpuenv` command.

Imports environment/, admission/ and rehearsal/. Nothing imports it.
"""
