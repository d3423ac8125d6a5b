"""A client of the API server of the environment's cluster, over REST: no kubectl, and its refusals explained.

Imports environment/, tpuenv.google and tpuenv.failure.
"""
