"""The queues and nodes of an environment as plain Kubernetes objects, with their quotas: queues, with
cpu_memory_quotas, nodes, and what limits a team in its namespace (team_objects).

Imports the rest of environment/; nothing there imports it.
"""
