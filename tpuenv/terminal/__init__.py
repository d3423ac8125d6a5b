"""What a person at a terminal sees and answers: colours, tables, progress, questions.

Imports nothing but what every package may.
"""
