"""What an environment costs an hour and a month: by its settings, and by a plan of Terraform.

Imports environment/, tpuenv.failure and vocabulary/. No Google client, no Terraform.
"""
