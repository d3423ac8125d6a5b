"""The Terraform stacks: one file a stack, and a state of its own for every stack.

Imports environment/ and vocabulary/, and the provider bindings.

Importing any of them prepares the provider bindings first, because that only works before a binding is imported.
"""

from __future__ import annotations

from stacks import bindings

bindings.prepare()
