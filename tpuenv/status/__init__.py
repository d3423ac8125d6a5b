"""How the environment is now: slices, queues and jobs, read at one moment, as tables, as JSON, or again and again.

Imports tpuenv.jobs and tpuenv.kubernetes.
"""
