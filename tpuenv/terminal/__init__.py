"""What a person at a terminal sees and answers: colours, tables, progress, questions.

Imports tpuenv.failure.
"""
