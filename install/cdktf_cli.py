"""The CDKTF CLI of package-lock.json, installed by the environment's own npm, and the command that starts it."""

from __future__ import annotations

import platform
import shlex
import shutil
import tempfile
from pathlib import Path

from install.packages import node_package
from install.steps import CommandFailed, Layout, SetupError, content, download, run, write_program

# What npm says when no registry answers.
UNREACHABLE = ("ENOTFOUND", "ECONNREFUSED", "ETIMEDOUT", "EAI_AGAIN", "ENETUNREACH", "ECONNRESET", "ENOTCACHED")

# The CLI's terminal, which has a native part. It brings that ready-made for Node 22 on some platforms only.
PTY = "@cdktf/node-pty-prebuilt-multiarch"


def inputs(layout: Layout) -> list[str]:
    return [str(layout.root), platform.machine(), content(layout.root / "package-lock.json")]


def install(layout: Layout) -> None:
    """Raises SetupError when the packages cannot be had, or the native part does not work on this platform."""
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(layout.root / name, layout.venv / name)
    download(
        [layout.node, _npm(layout), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
        what="the CDKTF CLI",
        server="npm's registry",
        unreachable=UNREACHABLE,
        layout=layout,
        cwd=layout.venv,
    )
    if not _terminal_works(layout):
        _build_terminal(layout)


def _npm(layout: Layout) -> str:
    return str(node_package(layout) / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")


def _terminal_works(layout: Layout) -> bool:
    try:
        run([layout.node, "-e", f"require('{PTY}')"], layout=layout, cwd=layout.venv)
    except CommandFailed:
        return False
    return True


def _build_terminal(layout: Layout) -> None:
    """Compile the native part, with the headers that came with Node, where it does not come ready-made.

    In a temporary folder, because make cannot build in a path with a space.
    """
    gyp = node_package(layout) / "lib" / "node_modules" / "npm" / "node_modules" / "node-gyp" / "bin" / "node-gyp.js"
    with tempfile.TemporaryDirectory() as temporary:
        source = Path(temporary, "pty")
        shutil.copytree(layout.node_modules / PTY, source)
        shutil.copytree(layout.node_modules / "nan", Path(temporary, "node_modules", "nan"))
        node = Path(temporary, "node")
        node.symlink_to(node_package(layout))
        run([layout.node, gyp, "rebuild", f"--nodedir={node}"], layout=layout, cwd=source, check=False)
        built = source / "build" / "Release" / "pty.node"
        if built.exists():
            target = layout.node_modules / PTY / "build" / "Release" / "pty.node"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(built, target)
    if not _terminal_works(layout):
        raise SetupError(
            f"the CDKTF CLI has no ready-made native part for {platform.system()} {platform.machine()}, and it could "
            f"not be compiled: install make and a C++ compiler (Debian and Ubuntu: apt install build-essential; "
            f"macOS: xcode-select --install), then try again; the log is {layout.log}"
        )


def write_command(layout: Layout) -> None:
    """`.venv/bin/cdktf`: the CLI on the environment's Node, with the environment's python and terraform first on PATH.

    It asks HashiCorp's checkpoint service nothing unless CHECKPOINT_DISABLE says otherwise, nor npm for a newer cdktf
    unless DISABLE_VERSION_CHECK does: the CLI is archived, so there is no news, and without a network each command
    would wait for it, a minute and more for npm. It runs Terraform, the one that TERRAFORM_BINARY_NAME names if it is
    set, through `.venv/bin/terraform-for-cdktf`. After an interrupt that begins no Terraform any more;
    cdktf_patches/interrupts.cjs says why.
    """
    cli = layout.node_modules / "cdktf-cli" / "bundle" / "bin" / "cdktf"
    held_terminal = layout.root / "cdktf_patches" / "held_terminal.py"
    patches = [layout.root / "cdktf_patches" / name for name in ("interrupts.cjs", "lazy_hcl2cdk.cjs")]
    terraform = layout.bin / "terraform-for-cdktf"
    write_program(
        terraform,
        "#!/bin/sh\n"
        'if [ -n "$TPUENV_INTERRUPTED" ]; then echo "interrupted: $(basename "$PWD") is not begun" >&2; exit 130; fi\n'
        '[ -t 1 ] || exec "$TPUENV_TERRAFORM" "$@"\n'
        f"exec {shlex.quote(str(layout.python))} -IS {shlex.quote(str(held_terminal))} "
        '"$TPUENV_TERRAFORM" "$@"\n',
    )
    write_program(
        layout.bin / "cdktf",
        "#!/bin/sh\n"
        f"PATH={shlex.quote(str(layout.bin))}:$PATH\n"
        "CHECKPOINT_DISABLE=${CHECKPOINT_DISABLE-1}\n"
        "DISABLE_VERSION_CHECK=${DISABLE_VERSION_CHECK-1}\n"
        "TPUENV_TERRAFORM=${TERRAFORM_BINARY_NAME:-terraform}\n"
        f"TERRAFORM_BINARY_NAME={shlex.quote(str(terraform))}\n"
        "export PATH CHECKPOINT_DISABLE DISABLE_VERSION_CHECK TPUENV_TERRAFORM TERRAFORM_BINARY_NAME\n"
        "unset TPUENV_INTERRUPTED\n"
        f"exec {shlex.join([str(layout.node), *(f'--require={patch}' for patch in patches), str(cli)])} "
        '"$@"\n',
    )
