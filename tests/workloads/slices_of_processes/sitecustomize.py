"""With this folder in PYTHONPATH a process stands for a slice, in every Python that it starts too.

The CPU devices of JAX say that they are all in slice 0, so MaxText counts one slice, and JAX makes no mesh of several.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any


def _mesh_utils(module: ModuleType) -> None:
    module.create_hybrid_device_mesh = functools.partial(module.create_hybrid_device_mesh, process_is_granule=True)  # type: ignore[attr-defined]


def _max_utils(module: ModuleType) -> None:
    module.get_num_slices = lambda *_, **__: module.jax.process_count()  # type: ignore[attr-defined]


CHANGES: dict[str, Callable[[Any], None]] = {
    "jax.experimental.mesh_utils": _mesh_utils,
    "maxtext.utils.max_utils": _max_utils,
}


class Changer(importlib.abc.MetaPathFinder):
    """Changes a module when it has been imported, because importing it here would take every process seconds."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> Any:
        if name not in CHANGES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec and spec.loader:
            load = spec.loader.exec_module

            def loaded(module: ModuleType) -> None:
                load(module)
                CHANGES[name](module)

            spec.loader.exec_module = loaded  # type: ignore[method-assign]
        return spec


sys.meta_path.insert(0, Changer())
