"""What an environment costs an hour and a month: by its settings, and by a plan of Terraform.

Imports environment/, vocabulary/, tpuenv.terminal and tpuenv.failure. No Google client, no Terraform.
"""
