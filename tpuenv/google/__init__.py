"""What asks Google: clients, credentials, endpoints, APIs, builds.

Imports tpuenv.terminal and tpuenv.failure.
"""
