"""Runs Terraform for cdktf, in the terminal that cdktf has given to it: `held_terminal.py PROGRAM ARGUMENT...`.

cdktf 0.21 closes that terminal as soon as the process in it ends, and loses what it has not read by then: the end of
what Terraform said, which is the error when there is one. So this process is the one in the terminal, and after a
Terraform that has failed it stays a while.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from types import FrameType

HELD_SECONDS = 1.0

_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(command: Sequence[str]) -> int:
    """The program's exit code; 128 + n if signal n ended it."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [*_PASSED_ON, signal.SIGTTOU])
    child = os.fork()
    if child == 0:
        _become(command, blocked)
    with contextlib.suppress(OSError):  # it has done so itself
        os.setpgid(child, child)

    def pass_on(number: int, _frame: FrameType | None) -> None:
        """An interrupt, as one that is typed, or SIGTERM: either lets Terraform save the state and free its lock.

        A lost terminal (SIGHUP) would end it at once, so that is passed on as an interrupt.
        """
        with contextlib.suppress(OSError):
            if number == signal.SIGTERM:
                os.kill(child, number)
            else:
                os.killpg(child, signal.SIGINT)

    for number in _PASSED_ON:
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        time.sleep(HELD_SECONDS)
    return code if code >= 0 else 128 - code


def _become(command: Sequence[str], mask: Iterable[int]) -> None:
    """In a process group of its own, a typed interrupt comes to it once: Terraform gives up at the second."""
    try:
        os.setpgid(0, 0)
        with contextlib.suppress(OSError):  # the terminal is not this session's
            os.tcsetpgrp(sys.stdout.fileno(), os.getpid())
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.execvp(command[0], list(command))
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr, flush=True)
    finally:
        os._exit(127)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
