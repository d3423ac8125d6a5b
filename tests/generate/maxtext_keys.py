"""Writes manifests/maxtext/keys.txt from the MaxText in .venv-workloads: python -m tests.generate.maxtext_keys

All keys of its base.yml but run_name, which is the name of the run in the cluster too, and not set as a key.
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent.parent
KEYS = ROOT / "manifests" / "maxtext" / "keys.txt"

_SITE_PACKAGES = ".venv-workloads/lib/python*/site-packages"


def keys(root: Path = ROOT) -> str:
    """The text of keys.txt, a key a line."""
    base = next(root.glob(f"{_SITE_PACKAGES}/maxtext/configs/base.yml"), None)
    if base is None:
        sys.exit("MaxText is not installed; run make setup-workloads")
    names = set(yaml.safe_load(base.read_text())) - {"run_name"}
    return "".join(f"{name}\n" for name in sorted(names))


if __name__ == "__main__":
    KEYS.write_text(keys())
    sys.stdout.write(f"{KEYS}\n")
