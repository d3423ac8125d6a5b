"""Ready workloads: a folder for each, with its YAML files, program, Dockerfile and README; rendered for every team.

Imports environment/ and vocabulary/.
"""
