"""What an environment costs an hour and a month: by its settings, and by a plan of Terraform.

Imports nothing but what every package may: no Google client, no Terraform.
"""
