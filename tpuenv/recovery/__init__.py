"""What a killed run leaves, searched and repaired: abandoned locks, lost states, objects that no state has.

recovery has the order, abandoned_locks releases locks, lost_states repairs states, search finds the objects,
import_ids and imports bring them in, findings and advice say it after a failed command. Imports tpuenv.review,
tpuenv.state, tpuenv.google and tpuenv.terraform.
"""
