"""The queues and nodes of an environment as plain Kubernetes objects, with their quotas.

Imports the rest of environment/; nothing there imports it.
"""
