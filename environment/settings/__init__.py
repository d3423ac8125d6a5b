"""vars.env: the settings, what their values may be, and the file.

Imports environment.members, the catalogues (tpu, cpu) and vocabulary; not the fleet.
"""
