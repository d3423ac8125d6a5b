"""What a killed run leaves: locks, lost states, objects that no state has. Finds it, and puts it right.

Imports tpuenv.review, tpuenv.state, tpuenv.google and tpuenv.terraform.
"""
