"""Runs Terraform in the folder of a stack, and explains its errors. Imports no other package of tpuenv/."""
