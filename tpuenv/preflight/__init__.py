"""Whether the project of the settings can hold what they describe, before anything is created or paid.

Each check is data that Google is asked for (its questions) and a comparison with what the environment needs (its rows),
which asks nothing. Imports tpuenv.cost, tpuenv.google and tpuenv.state.
"""
