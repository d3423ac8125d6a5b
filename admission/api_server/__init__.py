"""What the API server refuses, in Jobs, pods and their fields, and what it adds. Kubernetes 1.34.

Imports the rules of JobSet, and admission's own base: rule, workload, result, syntax.
"""
