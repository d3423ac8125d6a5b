"""Why a job does not run, and what to do: causes, from the objects and events of the cluster. It changes nothing.

Here: snapshot (the objects), cause (one, with what to do), diagnose (the causes of the whole job, and the order of
all), a file for each family of causes (queues, creation, scheduling, containers, stuck), and answer (`tpuenv why`).
Texts of the cluster's programs are patterns; each file names their sources.

Imports admission/, tpuenv.jobs.job and its neighbours, tpuenv.kubernetes.
"""
