"""One file a subcommand: its arguments, its help, the order of what it does, its messages.

Imports every other package of tpuenv/; only tpuenv/main.py imports it.
"""
