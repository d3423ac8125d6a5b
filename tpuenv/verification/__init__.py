"""Whether a deployed environment works: hello-tpu is run for each team on each pool group, and what it measures is
compared, in rows.

Imports admission/, manifests/, tpuenv.jobs, tpuenv.kubernetes and tpuenv.cost.
"""
