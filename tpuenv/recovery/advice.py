"""What to do after Terraform failed, its errors explained, what `tpuenv recover` would find; which stacks are left."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Sequence

from environment import Environment
from tpuenv.failure import Failed
from tpuenv.terraform.errors import KILLED, explain
from tpuenv.terraform.stacks import Stack

# Errors about a lock, of Google and Kubernetes about a name, of the backend about its bucket, and of Terraform about a
# state that it cannot read.
_FOR_RECOVER = re.compile(
    r"state lock|Error 409|already ?exists|bucket doesn't exist|cannot re-use a name|state file format", re.IGNORECASE
)


def after_failure(environment: Environment, stacks: Sequence[Stack], output: str, *, code: int = 1) -> str:
    """Paragraphs to print after Terraform's own error; "" when there is nothing to add.

    The stacks are synthesized; `code` is that of Terraform's process, -9 where it was killed.
    """
    killed = code == -signal.SIGKILL
    parts = [KILLED if killed else "", explain(output)]
    if killed or _FOR_RECOVER.search(output):
        parts.append(for_recover(environment, stacks))
    return "".join(f"\n\n{part}" for part in parts if part)


def for_recover(environment: Environment, stacks: Sequence[Stack]) -> str:
    """Locks that are held and objects that are in no state, a line each; "" when there are none.

    Changes nothing and raises nothing: where it cannot find out, it says so.
    """
    # Not before it is needed: Google's libraries take a second to load.
    from tpuenv.google.clients import connect
    from tpuenv.recovery.findings import findings

    try:
        lines = findings(connect(environment.settings.project_id), environment.names, stacks)
    except Failed as failure:
        lines = [f"Locks and what is in no state are not known: {failure}"]
    return "\n".join([*lines, "`tpuenv recover` corrects that."]) if lines else ""


def removed_stacks(environment: Environment, synthesized: Sequence[Stack]) -> Iterator[str]:
    """A line for each deployed stack that the settings no longer have, with what destroys it.

    Changes nothing and raises nothing: where it cannot find out, it says so.
    """
    # Not before it is needed: Google's libraries take a second to load.
    from tpuenv.google.clients import connect
    from tpuenv.state import versions

    names = [stack.name for stack in synthesized]
    try:
        yield from versions.of_removed_stacks(connect(environment.settings.project_id), environment.names, names)
    except Failed as failure:
        yield f"Whether there are stacks that the settings no longer have is not known: {failure}"
