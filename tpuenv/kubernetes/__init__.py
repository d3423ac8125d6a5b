"""A client of the API server of the environment's cluster, over REST: no kubectl, and its refusals explained.

Imports tpuenv.google.
"""
