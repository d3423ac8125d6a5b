"""A recipe's training step compiled for the slice that it is to run on, on this machine: whether it fits its memory.

question.py says what is compiled, compiler.py compiles it, answers.py is what came out, verdict.py its text; cache.py
keeps answers, alternatives.py and largest_batch.py compile further ones, known.py says what was compiled before.
chips.py and topology.py have what the compiler is told of the TPUs.

Imports manifests/.
"""
