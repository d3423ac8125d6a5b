"""Trains with MaxText, and says by the exit code whether another start would help.

MaxText ends with exit code 0 when one of its hosts is terminated: to Kubernetes the job would have succeeded. Here all
hosts then end with INTERRUPTED; and with REFUSED if MaxText does not take its keys. jobset.yaml says what follows.
"""

from __future__ import annotations

import sys
from typing import Any

from absl import app
from jax.experimental import multihost_utils
from maxtext.configs import pyconfig
from maxtext.trainers.pre_train import train

INTERRUPTED = 75  # EX_TEMPFAIL of sysexits.h: try again
REFUSED = 2


class TerminationNotice:
    """Whether the hosts agreed on a step to end at, because one of them got SIGTERM."""

    def __init__(self) -> None:
        self.received = False
        self._reached = multihost_utils.reached_preemption_sync_point
        multihost_utils.reached_preemption_sync_point = self._noted

    def _noted(self, step: int) -> bool:
        reached = bool(self._reached(step))
        self.received |= reached
        return reached


def main(arguments: list[str]) -> None:
    """Trains as `python -m maxtext.trainers.pre_train.train` does, with the same key=value words."""
    notice = TerminationNotice()
    _refuse_bad_keys()
    train.main(arguments)
    if notice.received:
        print("SIGTERM ended the training; the next start goes on from the checkpoint", flush=True)
        sys.exit(INTERRUPTED)


def _refuse_bad_keys() -> None:
    """MaxText means to end with exit code 2 too, but raises where unittest is imported, as some package always does."""
    initialize = pyconfig.initialize

    def initialized(*words: Any, **keys: Any) -> Any:
        try:
            return initialize(*words, **keys)
        except ValueError as error:
            print(f"MaxText does not take these keys: {error}", file=sys.stderr, flush=True)
            sys.exit(REFUSED)

    pyconfig.initialize = initialized


if __name__ == "__main__":
    app.run(main)
