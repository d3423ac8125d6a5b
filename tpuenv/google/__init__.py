"""Requests to Google: clients, credentials, endpoints, bucket objects, APIs, builds, triggers, images.

Imports tpuenv.terminal and tpuenv.failure.
"""
