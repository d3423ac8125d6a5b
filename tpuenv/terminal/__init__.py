"""What a person at a terminal sees and answers: colours, progress, questions.

Imports nothing of ours.
"""
