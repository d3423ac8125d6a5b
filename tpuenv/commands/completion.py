"""`tpuenv completion`: the script that lets a shell complete tpuenv's commands, options and stacks."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from tpuenv.commands.command import command

# The variable with which the script asks `tpuenv` for completions: https://click.palletsprojects.com/shell-completion
VARIABLE = "_TPUENV_COMPLETE"


@command(
    summary="print the script that completes tpuenv in a shell",
    examples=(
        """eval "$(tpuenv completion bash)"     in ~/.bashrc""",
        """eval "$(tpuenv completion zsh)"      in ~/.zshrc""",
        """tpuenv completion fish | source      in ~/.config/fish/config.fish""",
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), metavar="SHELL", help="bash, zsh or fish")
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Prints the script for a shell. One line in its profile loads it."""
    shell_class = get_completion_class(shell)
    assert shell_class is not None
    print(shell_class(context.find_root().command, {}, "tpuenv", VARIABLE).source())
