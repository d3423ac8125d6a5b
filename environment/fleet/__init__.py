"""fleet.yaml: kinds of slice and teams, what their values may be, the file, and which slices are whose.

Imports environment.settings, the catalogues and vocabulary.
"""
