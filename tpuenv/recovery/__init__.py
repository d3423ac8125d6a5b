"""What a killed run leaves: locks, lost states, objects in no state. Searches for it and repairs it.

Imports tpuenv.review, tpuenv.state, tpuenv.google and tpuenv.terraform.
"""
