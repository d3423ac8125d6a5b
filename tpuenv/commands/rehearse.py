"""`tpuenv rehearse`: the whole life of the environment on this machine, in a fake Google Cloud."""

from __future__ import annotations

import os
from pathlib import Path

from tpuenv.commands import options
from tpuenv.commands.command import command
from tpuenv.rehearsals.whole_environment import EnvironmentRehearsal
from tpuenv.rehearsals.world import environment_to_rehearse, open_world, overrides


@command(
    summary="rehearse the whole deployment on this machine, without a cloud account",
    examples=(
        "tpuenv rehearse",
        "TPU_TYPE=v5p-128 NUM_TPU_POOLS=1 ZONE=us-east5-a tpuenv rehearse",
        "tpuenv rehearse --keep     stop before the destroy, to inspect what exists",
    ),
    notes="It proves the wiring, the order, that a second deploy changes nothing, and the way back; it does not prove "
    "how Google Cloud behaves. What it refuses, and after which page of documentation, is in rehearsal/.",
)
@options.flag(
    "--keep", "stop before the destroy and print where everything is; at a terminal, also how to reach the fake cloud"
)
@options.rehearsal
def rehearse(*, keep: bool, yes_it_exists: bool, folder: Path) -> int:
    """Deploys every stack of vars.env with the real cdktf CLI and the real Terraform against a Google Cloud that is
    faked on this machine: no account, no credentials, no network. It shows what exists and who may use it, deploys
    again (nothing may change), submits every recipe of manifests/ for every team and pool group that it may use, sees
    destroy refused while protected, destroys everything, and checks that nothing is left. The exit code is 0 only if
    all of that went well. NO_COLOR=1 leaves out the colours.
    """
    environment = environment_to_rehearse("rehearse", yes_it_exists=yes_it_exists)
    with open_world(environment, folder, overrides(os.environ)) as world:
        return EnvironmentRehearsal(world, environment).run(keep=keep)
