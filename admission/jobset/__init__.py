"""What JobSet's webhook and schema refuse. JobSet 0.12.0.

Imports admission's own base: rule, workload, result, syntax.
"""
