"""Requests to Google: clients, credentials, endpoints, bucket objects, APIs, builds, triggers.

Imports tpuenv.terminal and tpuenv.failure.
"""
