"""vars.env, fleet.yaml -> environment -> stacks and manifests: what `cdktf synth`, `deploy` and `destroy` run."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import environment
from environment import output_folder, project
from vocabulary.printable import printable
from vocabulary.resource_types import DamagedFacts

# What jsii raises when the file system refuses Node.js a file: "Error: EISDIR: illegal operation on a directory, ..."
_NODE_REFUSED = re.compile(r"Error: (E[A-Z]+: .*)", re.DOTALL)


def main() -> int:
    """0, or 2 with every problem of the settings, manifests, output folder or resource types on stderr."""
    try:
        loaded = project.load_and_warn()
    except environment.Refused as refused:
        print(refused, file=sys.stderr)
        return 2

    folder = Path(os.environ.get("CDKTF_OUTDIR") or "cdktf.out")
    if problem := output_folder.problem_of(folder):
        print(f"--output: {problem}", file=sys.stderr)
        return 2
    # Not before the settings are known to be good: this starts Node.
    from manifests.recipes import BadManifest
    from manifests.render import render
    from manifests.written_files import NotWritten, write_files
    from stacks.app import write_stacks

    try:
        write_files(folder / "manifests", render(loaded))
    except (BadManifest, NotWritten) as bad:
        print(bad, file=sys.stderr)
        return 2
    try:
        write_stacks(loaded, folder)
    except DamagedFacts as damaged:
        print(damaged, file=sys.stderr)
        return 2
    except OSError as error:
        print(f"--output: {output_folder.shown(error.filename or folder)}: {error.strerror}", file=sys.stderr)
        return 2
    except RuntimeError as error:
        reason = _NODE_REFUSED.fullmatch(str(error))
        if not reason:
            raise
        print(f"--output: {printable(reason[1])}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
