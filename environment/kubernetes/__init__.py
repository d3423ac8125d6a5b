"""The queues and nodes of an environment as plain Kubernetes objects, with their quotas: queues, with
cpu_memory_quotas, and nodes.

Imports the rest of environment/; nothing there imports it.
"""
