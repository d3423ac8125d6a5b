"""`python -m install` installs what is not installed yet; `--check` exits 0 if that is nothing.

`python -m install workloads` does so for what the workloads need, and `python -m install workloads pytorch` for what
PyTorch/XLA needs too.
"""

from __future__ import annotations

import sys

from install import workloads
from install.install import STEPS, alone, install, to_do
from install.steps import Layout, SetupError


def main(arguments: list[str]) -> int:
    layout, steps = Layout(), STEPS
    if "workloads" in arguments:
        layout = Layout(folder=workloads.FOLDER)
        steps = workloads.PYTORCH_STEPS if "pytorch" in arguments else workloads.STEPS
    if "--check" in arguments:
        return 1 if to_do(layout, steps) else 0
    if not to_do(layout, steps):
        return 0
    try:
        with alone(layout):
            install(layout, steps)
    except SetupError as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"cannot write {error.filename or layout.venv}: {error.strerror or error}")
    except KeyboardInterrupt:
        return _fail("stopped; the next one goes on from here")
    return 0


def _fail(reason: str) -> int:
    print(f"setup: {reason}", file=sys.stderr, flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
