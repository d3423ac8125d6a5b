"""A recipe's training step compiled for the slice that it is to run on, on this machine: whether it fits its memory.

question.py says what is compiled, compiler.py compiles it, answers.py is what came out, verdict.py its text; cache.py
keeps answers, alternatives.py and largest_batch.py compile further ones.

Imports environment/, manifests/, tpuenv.terminal and tpuenv.failure.
"""
