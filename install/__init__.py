"""Installs everything the project needs into `.venv`, and what the workloads need into `.venv-workloads`.

Imports the standard library only, for it runs before anything is installed; warm_up, the last step, imports
stacks.bindings.
"""
