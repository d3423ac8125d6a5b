"""What to tell after Terraform failed: what to do about its errors, and what `tpuenv recover` would find."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from environment import Environment
from tpuenv.failure import Failed
from tpuenv.terraform.errors import KILLED, explain
from tpuenv.terraform.stacks import Stack

if TYPE_CHECKING:
    from tpuenv.recovery.steps import Recovery

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
    parts = [KILLED if killed else "", explain(output)]
    if killed or _FOR_RECOVER.search(output):
        parts.append(found(environment, stacks))
    return "".join(f"\n\n{part}" for part in parts if part)


def found(environment: Environment, stacks: Sequence[Stack]) -> str:
    """Locks that are held and objects that are in no state, a line each; "" when there are none."""
    lines = findings(environment, stacks)
    return "\n".join([*lines, "`tpuenv recover` puts that right."]) if lines else ""


def findings(environment: Environment, stacks: Sequence[Stack]) -> list[str]:
    """What `tpuenv recover` would find about these stacks, in lines for whoever's deploy has just failed.

    Changes nothing and raises nothing: where it cannot look, it says so. The stacks are synthesized already.
    """
    try:
        return prepared(environment, stacks, ask=lambda _question: False, dry_run=True, quick=True).findings()
    except Failed as failure:
        return [f"Could not look for locks and for what is in no state: {failure}"]


def prepared(
    environment: Environment,
    stacks: Sequence[Stack],
    *,
    ask: Callable[[str], bool],
    careful: bool = True,
    dry_run: bool,
    quick: bool = False,
) -> Recovery:
    """What `tpuenv recover` does, ready to run. Raises Failed when Google does not know who asks."""
    # Not before the settings are known to be good: Google's libraries take a second to load.
    from tpuenv.google.clients import connect
    from tpuenv.recovery.steps import Recovery
    from tpuenv.terminal.dialog import Dialog

    return Recovery(
        environment=environment,
        clients=connect(environment.settings.project_id),
        stacks=stacks,
        dialog=Dialog(answer=ask, careful=careful),
        dry_run=dry_run,
        quick=quick,
    )
