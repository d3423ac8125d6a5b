"""How names and values are written, by everyone's rules: keys of labels, quantities, YAML, text for a terminal.

Pure functions and constants that more than one package needs. Imports nothing of ours.
"""
