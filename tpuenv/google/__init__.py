"""Requests to Google: clients, credentials, endpoints, bucket objects, APIs, builds, triggers, images.

Imports nothing but what every package may.
"""
