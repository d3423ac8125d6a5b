"""What JobSet's webhook and schema refuse. JobSet 0.12.0.

Imports admission's own base: rules, manifest, result, syntax.
"""
