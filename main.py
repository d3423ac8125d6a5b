"""vars.env, fleet.yaml -> environment -> stacks and manifests: what `cdktf synth`, `deploy` and `destroy` run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import environment
from environment import project
from vocabulary.printable import printable, quoted

# The folders of a virtual environment that its tools are in; () is the virtual environment itself.
_INSTALLED = ((), ("bin",), ("include",), ("lib",), ("lib64",), ("share",))

# What jsii raises when the file system refuses Node.js a file: "Error: EISDIR: illegal operation on a directory, ..."
_NODE_REFUSED = re.compile(r"Error: (E[A-Z]+: .*)", re.DOTALL)


def main() -> int:
    """0, or 2 with every problem of the settings, of the manifests or of the output folder on stderr."""
    try:
        loaded = project.load_and_warn()
    except environment.Refused as refused:
        print(refused, file=sys.stderr)
        return 2

    folder = Path(os.environ.get("CDKTF_OUTDIR") or "cdktf.out")
    if problem := _problem(folder):
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
    except OSError as error:
        print(f"--output: {_shown(error.filename or folder)}: {error.strerror}", file=sys.stderr)
        return 2
    except RuntimeError as error:
        reason = _NODE_REFUSED.fullmatch(str(error))
        if not reason:
            raise
        print(f"--output: {printable(reason[1])}", file=sys.stderr)
        return 2
    return 0


def _problem(folder: Path) -> str | None:
    """Why nothing can be written to the output folder, or must not be; None if it can."""
    try:
        os.fspath(folder).encode()
        resolved = folder.absolute().resolve()
        if project.ROOT.is_relative_to(resolved):
            return f"{_shown(folder)} holds this checkout; name a folder that is there for it alone"
        if resolved.is_relative_to(project.ROOT) and _is_of_the_checkout(resolved.relative_to(project.ROOT)):
            return f"{_shown(folder)} holds files of this checkout; name a folder that is there for it alone"
        for inner in (folder / "manifests", folder / "stacks"):
            present = next(path for path in (inner, *inner.absolute().parents) if _exists(path))
            if not present.is_dir():
                return f"{_shown(folder if present == folder.absolute() else present)} is a file; name a folder"
            with tempfile.TemporaryFile(dir=present):
                pass
    except UnicodeEncodeError:
        return f"{_shown(folder)} is not UTF-8; name another folder"
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of symbolic links
        return f"{_shown(folder)}: {getattr(error, 'strerror', None) or error}"
    return None


def _is_of_the_checkout(inner: Path) -> bool:
    """Whether git, or the installed tools, have files in this folder of the checkout."""
    if inner.parts[0] == ".git" or (inner.parts[0] == ".venv" and inner.parts[1:2] in _INSTALLED):
        return True
    # A hook of git sets GIT_DIR and GIT_INDEX_FILE, which can name another repository.
    variables = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    command = ["git", "--literal-pathspecs", "-C", str(project.ROOT), "ls-files", "--", str(inner)]
    try:
        return bool(subprocess.run(command, env=variables, capture_output=True, check=False).stdout)
    except OSError:  # a checkout can be a downloaded archive, where there is no git
        return False


def _exists(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _shown(path: str | Path) -> str:
    return quoted(str(path), longest=1000)


if __name__ == "__main__":
    sys.exit(main())
