"""A cluster, faked: its API server, the controllers of Kueue and JobSet, and the resource types of two providers.

Imports rehearsal.google, rehearsal.terraform and admission/.
"""
