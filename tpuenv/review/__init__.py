"""Plans, their changes (masked, and as text), the records of plans, and a plan compared with its record.

Imports tpuenv.state, tpuenv.google and tpuenv.terraform.
"""
