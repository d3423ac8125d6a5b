"""Trains with MaxText, and fails if a termination signal ended the training before its last step.

MaxText ends with exit code 0 when one of its hosts is terminated: to Kubernetes the job would have succeeded. Here all
hosts then end with INTERRUPTED, which jobset.yaml takes for a reason to start again.
"""

from __future__ import annotations

import sys

from absl import app
from jax.experimental import multihost_utils
from maxtext.trainers.pre_train import train

INTERRUPTED = 75  # EX_TEMPFAIL of sysexits.h: try again


class TerminationNotice:
    """Whether the hosts agreed on a step to end at, because one of them got SIGTERM."""

    def __init__(self) -> None:
        self.received = False
        self._reached = multihost_utils.reached_preemption_sync_point
        multihost_utils.reached_preemption_sync_point = self._noted

    def _noted(self, step: int) -> bool:
        reached = self._reached(step)
        self.received |= reached
        return reached


def main(arguments: list[str]) -> None:
    """Trains as `python -m maxtext.trainers.pre_train.train` does, with the same key=value words."""
    notice = TerminationNotice()
    train.main(arguments)
    if notice.received:
        print("SIGTERM ended the training; the next start goes on from the checkpoint", flush=True)
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    app.run(main)
