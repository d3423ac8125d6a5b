"""Cloud Build, played on this machine: its files are read, checked and executed, and its triggers and approvals are the
played cloud's.

What is played, and after which page, is said where it is: config.py (the file), substitutions.py, steps.py (order,
failure, time limits, cancelling), images.py (what an image is here), triggers.py and builds.py (who starts what, as
whom).
"""
