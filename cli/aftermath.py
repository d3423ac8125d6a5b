"""What to tell after Terraform failed: what to do about its errors, and what `tpuenv recover` would find."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

from cli.explain import KILLED, explain
from cli.terraform import Stack
from environment import Environment

# Of a lock, of Google and Kubernetes about a name, of the backend about its bucket
# and of Terraform about a state that it cannot read.
_FOR_RECOVER = re.compile(
    r"state lock|Error 409|already ?exists|bucket doesn't exist|cannot re-use a name|state file format", re.IGNORECASE
)


def told(environment: Environment, stacks: Sequence[Stack], output: str, *, code: int = 1) -> str:
    """Paragraphs to put after the failure's own words; "" when there is nothing to add.

    The stacks are synthesized; `code` is that of Terraform's process, -9 where it was killed.
    """
    killed = code == -signal.SIGKILL
    parts = [KILLED if killed else "", explain(output) or ""]
    if killed or _FOR_RECOVER.search(output):
        parts.append(found(environment, stacks))
    return "".join(f"\n\n{part}" for part in parts if part)


def found(environment: Environment, stacks: Sequence[Stack]) -> str:
    """Locks that are held and objects that are in no state, a line each; "" when there are none."""
    # Not before something went wrong: Google's libraries take a second to load.
    from cli.recover import findings

    lines = findings(environment, stacks)
    return "\n".join([*lines, "`tpuenv recover` puts that right."]) if lines else ""
