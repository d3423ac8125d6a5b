"""How a command says that it could not do what it was asked."""

from __future__ import annotations


class Failed(Exception):
    """What went wrong and what to do, for the person who typed the command. Shown on stderr as it is; exit code 1."""


class WrongArgument(Failed):
    """What was typed can never be done, whatever there is in the cloud. Exit code 2."""
