"""Google Cloud, faked: a file for each service's resource types and rules, and the APIs that are called directly.

Imports rehearsal.terraform and rehearsal.cloud.
"""
