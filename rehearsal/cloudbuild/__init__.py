"""Cloud Build, faked. Imports rehearsal.google and rehearsal.terraform.

config reads a build file, checks has what Cloud Build refuses of a file or a trigger, substitutions expands ${NAMES},
images says what an image is on this machine, workspace copies the commit, steps runs the steps. resources are the
resource types (triggers, connections, ...), triggers what an event starts, builds their states, api the REST API.
"""
