"""Google Cloud, Kubernetes and Cloud Build, faked on this machine, so that the real Terraform runs the whole way.

Imports admission/ and vocabulary/; never environment/ or stacks/, which it is a test of. Here: the store of all that
exists, the server, a world to work in, the real CDKTF CLI in that world, builds, jobs, and the report.
"""
