"""What a person at a terminal sees and answers: colours, progress, questions.

Imports tpuenv.failure.
"""
