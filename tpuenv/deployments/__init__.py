"""What changes the cloud: cdktf in front of a person; for builds Terraform itself, with the environment's lock held.

Imports recovery/ and everything that it may import.
"""
