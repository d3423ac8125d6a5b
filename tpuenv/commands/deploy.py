"""`tpuenv deploy`: `cdktf deploy '*'`, with its errors explained."""

from __future__ import annotations

from environment import project
from tpuenv.commands import options
from tpuenv.commands.command import CDKTF_OPTIONS, CdktfCommand, command
from tpuenv.deployments import cdktf_explained
from tpuenv.terminal import dialog
from tpuenv.terraform import cdktf
from tpuenv.terraform.stacks import refuse_unknown, synthesize, synthesized_stacks, unmatched

# Where nothing was synthesized yet. Whether there is a state, only Google's answer would say.
_BEFORE_THE_FIRST = """\
The first deploy from here? `tpuenv preflight` says whether the project has the
quota, permissions and all else that it takes.
"""


@command(
    cls=CdktfCommand,
    summary="cdktf deploy '*', and an explanation if it fails",
    examples=(
        "tpuenv deploy",
        "tpuenv deploy foundation cluster --auto-approve",
        "tpuenv deploy queues -- --ignore-missing-stack-dependencies",
    ),
    notes=CDKTF_OPTIONS,
)
@options.stacks("all of them")
@options.auto_approve
def deploy(*, stacks: tuple[str, ...], auto_approve: bool, cdktf_options: list[str]) -> int:
    """Runs `cdktf deploy` on all stacks, or on those that are named, and nothing else: the plan, the question and the
    output are cdktf's own. When Terraform stops with an error that has a known cause - a missing API or bucket, a held
    lock, no login, a protected resource - it says in the end what to do. `tpuenv preflight` says before the first
    deploy what the project lacks for it, and `tpuenv verify` after it whether all works.
    """
    # Refuses wrong settings in one line each; cdktf would wrap them in its own error.
    environment = project.load_for_google()
    cdktf_explained.require_approval("deploy", auto_approve=auto_approve)
    output = cdktf.output_folder(cdktf_options)
    if dialog.has_person() and not (output / "manifest.json").exists():
        print(_BEFORE_THE_FIRST, flush=True)
    if (before := synthesized_stacks(output)) and unmatched(before, stacks):
        # Perhaps the settings have it since the last synthesis. Where there was none, cdktf's is not repeated.
        synthesized = synthesize(output)
        refuse_unknown(synthesized, unmatched(synthesized, stacks))
    return cdktf_explained.run(environment, "deploy", stacks, cdktf_options, auto_approve=auto_approve)
