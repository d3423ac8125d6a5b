"""Runs a program in which a process stands for a slice: slices_of_processes.py PROGRAM ARGUMENT...

The CPU devices of JAX say that they are all in slice 0, so a mesh of several slices cannot be made of them as it is.
"""

from __future__ import annotations

import functools
import runpy
import sys

from jax.experimental import mesh_utils

if __name__ == "__main__":
    mesh_utils.create_hybrid_device_mesh = functools.partial(
        mesh_utils.create_hybrid_device_mesh, process_is_granule=True
    )
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
