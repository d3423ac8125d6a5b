"""One file a subcommand: its arguments, its help, its messages.

Imports everything else in tpuenv/; only tpuenv/main.py imports it.
"""
