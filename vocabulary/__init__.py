"""How values are written, by rules that are not ours: quantities, label keys, YAML, text for a terminal.

Imports nothing of ours.
"""
