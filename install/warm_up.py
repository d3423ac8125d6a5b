"""Fills the jsii package cache: every assembly unpacked, and its runtime index made.

Run by the setup with the environment's Python. jsii makes an index on a thread of its kernel that ends with the kernel,
so this waits until all are there. stacks/bindings.py does not use its node hook while one is missing.
"""

from __future__ import annotations

import importlib
import sys
import time

from stacks import bindings

LONGEST_SECONDS = 180


def main() -> int:
    for binding in bindings.BINDINGS:
        importlib.import_module(f"{binding.package}._jsii")
    until = time.monotonic() + LONGEST_SECONDS
    while missing := [binding.assembly for binding in bindings.BINDINGS if not binding.runtime_index(bindings.CACHE)]:
        if time.monotonic() > until:
            print(f"jsii made no runtime index of {', '.join(missing)} in {LONGEST_SECONDS} s", file=sys.stderr)
            return 1
        time.sleep(0.2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
