"""Loads only the provider resources that are used: synthesis in one or two seconds instead of fifteen.

The bindings are slow for two reasons. In Python, a binding's root package imports all of its submodules (1,470 for
google), whichever of them is used. In node, its index.js requires as many files. So the root package is put in
sys.modules without running its body, and a hook resolves index.js to the lazy-index.js that every binding ships beside
it. Both depend on the insides of the pinned versions: with others this warns, and takes the plain way. The synthesized
JSON is the same either way (tests/stacks/test_bindings.py).

This is the one file of the stacks that touches the process environment: the jsii kernel is a node process that takes
its options from nowhere else. They are set while it starts, when cdktf is first imported, and then put back.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

JSII_VERSION = "1.142.0"
# Of the runtime index that jsii keeps beside an unpacked assembly, in JSII_VERSION.
RUNTIME_INDEX = ".jsii.runtime.v1.json"

# What install/ installed belongs to the virtual environment that runs, which need not be in this folder.
NODE = Path(sys.prefix) / "bin" / "node"
CACHE = Path(sys.prefix) / "cache" / "jsii"
HOOK = Path(__file__).resolve().with_name("lazy_index.cjs")

PLAIN = "TPUENV_PLAIN_BINDINGS"


@dataclass(frozen=True, kw_only=True)
class Binding:
    """A provider binding: its Python package, its jsii assembly, and the version that this file was tried with."""

    package: str
    assembly: str
    version: str

    def runtime_index(self, cache: Path) -> Path | None:
        """jsii's index of the assembly in that package cache, or None where there is none yet."""
        return next(cache.glob(f"{self.assembly}/{self.version}/*/{RUNTIME_INDEX}"), None)


BINDINGS = (
    Binding(package="cdktf_cdktf_provider_google", assembly="@cdktf/provider-google", version="16.12.1"),
    Binding(package="cdktf_cdktf_provider_kubernetes", assembly="@cdktf/provider-kubernetes", version="12.1.1"),
    Binding(package="cdktf_cdktf_provider_helm", assembly="@cdktf/provider-helm", version="12.1.2"),
)


def prepare() -> None:
    """Make the bindings fast to import, and start the jsii kernel. Does nothing when called again.

    TPUENV_PLAIN_BINDINGS=1 in the environment keeps the bindings as they are, for comparison.
    """
    if "cdktf" in sys.modules:
        if not any(isinstance(sys.modules.get(binding.package), _Root) for binding in BINDINGS):
            _warn("cdktf was imported before stacks")
        return
    lazy = os.environ.get(PLAIN) != "1"
    if lazy:
        # One that does not fit keeps node on the plain way; in Python the others still take the fast one.
        fits = [_put_root(binding) for binding in BINDINGS]
        lazy = all(fits)
    with _environment(_kernel_environment(lazy=lazy)):
        importlib.import_module("cdktf")


class _Root(ModuleType):
    """A binding's root package, whose body has not run. A submodule that is asked of it is imported then."""

    def __init__(self, package: str, spec: ModuleSpec, folder: Path) -> None:
        super().__init__(package)
        self.__spec__ = spec
        self.__file__ = spec.origin
        self.__loader__ = spec.loader
        self.__package__ = package
        self.__path__ = [str(folder)]
        # All names that the body would define.
        self.__all__ = [entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith("_")]

    def __getattr__(self, name: str) -> ModuleType:
        if name not in self.__all__:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return importlib.import_module(f"{self.__name__}.{name}")


def _put_root(binding: Binding) -> bool:
    """Put the binding's root package in sys.modules as it is, if it is the version that this file was tried with."""
    spec = importlib.util.find_spec(binding.package)
    if spec is None or spec.origin is None:
        _warn(f"{binding.package} is not installed")
        return False
    folder = Path(spec.origin).parent
    for package, version in ((binding.package, binding.version), ("jsii", JSII_VERSION)):
        # The version is in the folder's name; importlib.metadata would parse a long file for it.
        if not (folder.parent / f"{package}-{version}.dist-info").is_dir():
            _warn(f"{package} is not version {version}")
            return False
    root = _Root(binding.package, spec, folder)
    sys.modules[binding.package] = root
    # Tells jsii which module holds a type that the kernel returns before anything has imported it. Newer bindings carry
    # this map themselves; the JavaScript name of a submodule is its Python name in camel case.
    importlib.import_module("jsii._reference_map")._submodule_fqn_map.update(
        {f"{binding.assembly}.{_camel_case(name)}": f"{binding.package}.{name}" for name in root.__all__}
    )
    return True


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _kernel_environment(*, lazy: bool) -> dict[str, str]:
    """What to set for the kernel: our node, our package cache, the hook. What the user has set is kept."""
    variables = {}
    # What Node 22 calls deprecated is in cdktf 0.21 itself: no user can do anything about it.
    options = [os.environ.get("NODE_OPTIONS", ""), "--no-deprecation"]
    if NODE.exists() and "JSII_NODE" not in os.environ:
        variables["JSII_NODE"] = str(NODE)
    cache = Path(os.environ.get("JSII_RUNTIME_PACKAGE_CACHE_ROOT", CACHE))
    # jsii ends with an error on a cache that it cannot write; its own default place is slower, and works.
    writable = os.access(cache, os.W_OK)
    if writable:
        variables["JSII_RUNTIME_PACKAGE_CACHE_ROOT"] = str(cache)
    # The kernel writes its runtime index in the background, and ends before that is done when all else is fast. Without
    # an index every run is slow, for ever. So a cache without one is first filled the plain way.
    if lazy and writable and all(binding.runtime_index(cache) for binding in BINDINGS):
        options.append(f"--require {json.dumps(str(HOOK), ensure_ascii=False)}")
    elif lazy:
        _warn(f"jsii's package cache {cache} is not filled or cannot be written (make setup fills it)")
    variables["NODE_OPTIONS"] = " ".join(options).strip()
    return variables


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _warn(reason: str) -> None:
    warnings.warn(f"{reason}: the provider bindings are loaded the plain, slow way", RuntimeWarning, stacklevel=3)
