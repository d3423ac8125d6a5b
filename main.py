"""vars.env, fleet.yaml -> environment -> stacks and manifests: what `cdktf synth`, `deploy` and `destroy` run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import environment
from environment import project


def main() -> int:
    """0, or 2 with every problem of the settings, or of the manifests, on stderr."""
    try:
        loaded = project.load_and_warn()
    except environment.Refused as refused:
        print(refused, file=sys.stderr)
        return 2

    folder = Path(os.environ.get("CDKTF_OUTDIR") or "cdktf.out")
    # Not before the settings are known to be good: this starts Node.
    from manifests.render import BadManifest, render
    from stacks.app import write_stacks

    if project.ROOT.is_relative_to(folder.absolute().resolve()):
        print(f"--output: '{folder}' holds this checkout; name a folder that is there for it alone", file=sys.stderr)
        return 2
    try:
        render(loaded, folder / "manifests")
    except BadManifest as bad:
        print(bad, file=sys.stderr)
        return 2
    write_stacks(loaded, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
