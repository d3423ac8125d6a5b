"""What is changed in the CDKTF CLI at run time, a file a change, each with the reason. install/ puts them in its way.

Imports nothing of ours: they run before, or in place of, a program of the CLI.
"""
