"""The terminal: colours, progress, questions. Imports nothing of ours."""
