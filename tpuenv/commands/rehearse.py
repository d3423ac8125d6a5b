"""`tpuenv rehearse`: the whole way of the environment on this machine, against a played Google Cloud."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from environment import Environment, project
from tpuenv.commands import options
from tpuenv.commands.command import command
from tpuenv.rehearsals.session import PROTECTED, UNPROTECTED, Parts, overrides, to_rehearse, world_for
from tpuenv.rehearsals.submissions import submit_workloads
from tpuenv.terraform.errors import protected

if TYPE_CHECKING:
    from rehearsal.cdktf import Stack
    from rehearsal.world import World


@command(
    summary="rehearse the whole deployment on this machine, without a cloud account",
    examples=(
        "tpuenv rehearse",
        "TPU_TYPE=v5p-128 NUM_TPU_POOLS=1 tpuenv rehearse",
        "tpuenv rehearse --keep     stop before destroy, and say how to inspect it",
    ),
    notes="It proves the wiring, the order, that a second deploy changes nothing, and the way back; it does not prove "
    "how Google Cloud behaves. What it refuses, and after which page of documentation, is in rehearsal/.",
)
@options.flag("--keep", "leave the environment deployed in the fake cloud")
@options.rehearsal
def rehearse(*, keep: bool, yes_it_exists: bool, folder: Path) -> int:
    """Deploys every stack of vars.env with the real cdktf CLI and the real Terraform against a Google Cloud that is
    faked on this machine: no account, no credentials, no network. It shows what exists and who may use it, deploys
    again (nothing may change), submits every workload of manifests/ for every team and pool group that it may use, sees
    destroy refused while protected, destroys everything, and checks that nothing is left. The exit code is 0 only if
    all of that went well. NO_COLOR=1 leaves out the colours.
    """
    environment = to_rehearse(yes_it_exists=yes_it_exists)
    with world_for(environment, folder, overrides(os.environ)) as world:
        return Show(world, environment).play(keep=keep)


class Show(Parts):
    """The parts of `tpuenv rehearse`."""

    def __init__(self, world: World, environment: Environment) -> None:
        super().__init__(world, environment)
        self.deployed: set[str] = set()

    def play(self, *, keep: bool) -> int:
        """All parts in order. What has to be deployed first is left out when it is not."""
        names = self.environment.names
        self.say(f"Rehearsing {names.cluster} in project {self.world.project.id_}: nothing of this is real.\n\n")
        if self._deploy():
            self._what_exists()
            self._deploy_again()
            self._submit()
            if keep:
                self._tell_how_to_look()
            else:
                self._refused_destroy()
                self._destroy()
        return self.summary()

    def _deploy(self) -> bool:
        with self.part("Deploy: cdktf deploy '*'"):
            run = self.cdktf("deploy", PROTECTED)
            self.deployed = {stack.name for stack in run.stacks}
            if run.code:
                self.failed(run, "the deployment failed")
        return not run.code

    def _what_exists(self) -> None:
        from rehearsal import report
        from rehearsal.findings import findings
        from rehearsal.jobs import quotas_off

        with self.part("What exists"):
            for row in report.by_stack(self.world.cloud, self.world.project.state_bucket):
                self.say(f"  {row.stack:16} {report.counted(row.resources, 'resource')}")
                for fact in row.facts:
                    self.say(f"    {fact}")
            for problem in [*quotas_off(self.world.cloud, self._cluster()), *findings(self.world.cloud)]:
                self.wrong(problem)

    def _deploy_again(self) -> None:
        with self.part("Deploy again: nothing may change"):
            run = self.cdktf("deploy", PROTECTED)
            if run.code:
                self.failed(run, "the second deployment failed")
            missing = self.deployed - {stack.name for stack in run.stacks}
            if missing:
                self.wrong(f"the second deployment did not come to {', '.join(sorted(missing))}")
            for stack in run.stacks:
                if not stack.unchanged:
                    self.wrong(f"{stack.name}: the second deployment changes something\n" + _changes(stack))

    def _submit(self) -> None:
        with self.part("Submit every workload for every team"):
            submit_workloads(self, self._cluster())

    def _refused_destroy(self) -> None:
        with self.part("Destroy while protected: must be refused"):
            before = self.world.cloud.snapshot()
            run = self.cdktf("destroy", PROTECTED)
            gone = [f"{kind} {name}" for kind, name in before.keys() - self.world.cloud.snapshot().keys()]
            refused = {stack.name: protected(stack.text) for stack in run.stacks}
            if run.code == 0:
                self.wrong("destroy was not refused")
            elif not any(refused.values()):
                self.failed(run, "destroy failed for another reason than its protection")
            if gone:
                self.wrong(f"{len(gone)} objects were destroyed all the same: {', '.join(sorted(gone)[:5])}")
            elif run.code:
                for stack, addresses in refused.items():
                    for address, lifting in addresses.items():
                        self.say(f"  nothing deleted: {address} of {stack} is protected until {lifting}")

    def _destroy(self) -> None:
        from rehearsal import report

        words = " ".join(f"{key}={value}" for key, value in UNPROTECTED.items())
        with self.part(f"Destroy: {words} cdktf destroy '*'"):
            run = self.cdktf("destroy", UNPROTECTED)
            if run.code:
                self.failed(run, "destroy failed")
            left = report.remains(self.world.cloud, self.world.project.state_bucket)
            if left:
                self.wrong(f"{len(left)} things are left: {', '.join(left[:5])}")
            else:
                self.say("  nothing is left but the project, its enabled APIs and the state bucket")

    def _tell_how_to_look(self) -> None:
        world = self.world
        print(
            f"Kept: what exists is in {world.folder / 'cloud.db'} (SQLite), Terraform's folders are in {world.output}."
        )
        if sys.stdin.isatty():
            print("In another shell, this lets cdktf, tpuenv, terraform and curl meet the played cloud:")
            print(f"  . {quote(str(world.write_environment()))} && cd {quote(str(project.ROOT))}")
            print("  cdktf deploy queues --ignore-missing-stack-dependencies --skip-provider-lock \\")
            print(f"    --output {quote(str(world.output))}   # and --auto-approve in a shell without a terminal")
            print(f"  tpuenv recover --dry-run --output {quote(str(world.output))}")
            print(f"  curl {world.address}/clusters/{self._cluster()}/apis/kueue.x-k8s.io/v1beta2/clusterqueues")
            with contextlib.suppress(EOFError):
                input("Enter ends it. ")
        print()

    def _cluster(self) -> str:
        from rehearsal.google.network import CLUSTER

        return self.world.cloud.find(CLUSTER)[0].name


def _changes(stack: Stack) -> str:
    """The part of a plan that says what would change."""
    marks = ("# ", "~ ", "+ ", "- ", "-/+ ")
    return "\n".join(f"    {line}" for line in stack.text.splitlines() if line.strip().startswith(marks))
