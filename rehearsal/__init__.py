"""Google Cloud, Kubernetes and Cloud Build, faked on this machine, so that the real Terraform runs the whole way.

Imports admission/ and vocabulary/; never environment/ or stacks/, which it is a test of. Here: the store of all that
exists (cloud), the server process (serve, with http_server), a world to work in (world, with work_folder,
started_processes and terraform_program, the scripts that start Terraform), builds in that world (build_service), jobs
submitted as kubectl would (jobs), every resource type (resource_types), and what a person reads about it (inventory,
slice_owners, accepted_harm, leaks). Who runs the real CDKTF CLI in that world is tpuenv/rehearsals.
"""
