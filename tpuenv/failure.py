"""The errors of a command that could not do what it was asked."""

from __future__ import annotations

INTERRUPTED = 130  # the exit code of a command that Ctrl-C ended, as a shell has it


class Failed(Exception):
    """What went wrong and what to do, for the person who typed the command. Printed on stderr as it is."""

    exit_code = 1


class WrongArgument(Failed):
    """An argument that is wrong whatever is in the cloud."""

    exit_code = 2


class Interrupted(Failed):
    """Ctrl-C ended it before it could clean up: the text names what may remain."""

    exit_code = INTERRUPTED
