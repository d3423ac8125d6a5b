"""Google Cloud and Kubernetes, played on this machine, so that the real Terraform can run the whole way without an
account.
"""
