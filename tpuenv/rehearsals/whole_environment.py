"""The rehearsal of a whole environment: deploy, deploy again, submit recipes, destroy."""

from __future__ import annotations

import contextlib
from shlex import quote
from typing import TYPE_CHECKING, Any

from environment import Environment, project
from manifests.images import recipes_with_an_image, reference
from manifests.recipes import FOLDER
from tpuenv.rehearsals.parts import PROTECTED, UNPROTECTED, Parts
from tpuenv.rehearsals.submissions import submit_recipes
from tpuenv.rehearsals.verification import try_buckets, verify
from tpuenv.terminal.dialog import has_person
from tpuenv.terraform.errors import protected

if TYPE_CHECKING:
    from rehearsal.world import World
    from tpuenv.rehearsals.cdktf_in_world import StackRun


class EnvironmentRehearsal(Parts):
    """The parts of `tpuenv rehearse`."""

    def __init__(self, world: World, environment: Environment) -> None:
        super().__init__(world, environment)
        self.deployed: set[str] = set()

    def run(self, *, keep: bool) -> int:
        """All parts in order, as far as what they need was deployed; the exit code."""
        names = self.environment.names
        self.say(f"Rehearsing {names.cluster} in project {self.world.project.id_}: nothing of this is real.\n\n")
        if self._deploy():
            self._what_exists()
            self._deploy_again()
            self._verify()
            submitted = self._submit()
            if keep:
                self._free_the_slices(submitted)
                self._print_how_to_inspect()
            else:
                self._refused_destroy()
                self._destroy()
        return self.summary()

    def _deploy(self) -> bool:
        with self.part("Deploy: cdktf deploy '*'"):
            run = self.cdktf("deploy", PROTECTED, failure="the deployment failed")
            self.deployed = {stack.name for stack in run.stacks}
        return not run.code

    def _what_exists(self) -> None:
        from rehearsal import inventory
        from rehearsal.accepted_harm import findings
        from rehearsal.jobs import quotas_off

        with self.part("What exists in the cloud, without the guard of each stack, which is in its state alone"):
            for row in inventory.by_stack(self.world.cloud, self.world.project.state_bucket):
                self.say(f"  {row.stack:16} {inventory.counted(row.resources, 'resource')}")
                for fact in row.facts:
                    self.say(f"    {fact}")
            self.check_tokens()
            for problem in [*quotas_off(self.world.cloud, self._cluster()), *findings(self.world.cloud)]:
                self.wrong(problem)

    def _deploy_again(self) -> None:
        with self.part("Deploy again: nothing may change"):
            run = self.cdktf("deploy", PROTECTED, failure="the second deployment failed")
            missing = self.deployed - {stack.name for stack in run.stacks}
            if missing:
                self.wrong(f"the second deployment did not reach {', '.join(sorted(missing))}")
            for stack in run.stacks:
                if not stack.unchanged:
                    self.wrong(f"{stack.name}: the second deployment changes something\n" + _changes(stack))

    def _verify(self) -> None:
        with self.part("Verify every team on every pool group: tpuenv verify"):
            self._count_images_as_built()
            verify(self)
            try_buckets(self)

    def _submit(self) -> list[dict[str, Any]]:
        """The objects of the last jobs, which still run."""
        with self.part("Submit every recipe for every team"):
            submitted = submit_recipes(self, self._cluster())
        return submitted

    def _free_the_slices(self, submitted: list[dict[str, Any]]) -> None:
        """Deletes the last jobs: no job ends here by itself, and one that a person submits would wait for ever."""
        from rehearsal.jobs import delete

        delete(self.world, self._cluster(), submitted)

    def _count_images_as_built(self) -> None:
        """Nothing here builds or pulls an image. Where what exists is kept, the registry answers with their digests."""
        from rehearsal.google.artifact_registry_api import push

        recipes = recipes_with_an_image()
        for recipe in recipes:
            push(self.world.cloud, reference(self.environment, FOLDER / recipe))
        self.say(f"  the images of {', '.join(recipes)} count as built, and are not")

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
                self.wrong(f"{len(gone)} objects were destroyed nevertheless: {', '.join(sorted(gone)[:5])}")
            elif run.code:
                for stack, addresses in refused.items():
                    for address, lifting in addresses.items():
                        self.say(f"  nothing deleted: {address} of {stack} is protected until {lifting}")

    def _destroy(self) -> None:
        words = " ".join(f"{key}={value}" for key, value in UNPROTECTED.items())
        with self.part(f"Destroy: {words} cdktf destroy '*'"):
            self.cdktf("destroy", UNPROTECTED, failure="destroy failed")
            self.check_remains("the project, its enabled APIs and the state bucket")

    def _print_how_to_inspect(self) -> None:
        world = self.world
        print(
            f"Kept: what exists is in {world.folder / 'cloud.db'} (SQLite), Terraform's folders are in {world.output}."
        )
        if has_person():
            print("In another shell, this lets cdktf, tpuenv, terraform and curl reach the fake cloud:")
            print(f"  . {quote(str(world.write_environment()))} && cd {quote(str(project.ROOT))}")
            print("  tpuenv deploy queues -- --ignore-missing-stack-dependencies")
            print("  tpuenv recover --dry-run")
            print(f"  tpuenv submit hello-tpu{self._options()} --detach && tpuenv jobs")
            print(f"  curl {world.address}/clusters/{self._cluster()}/apis/kueue.x-k8s.io/v1beta2/clusterqueues")
            with contextlib.suppress(EOFError):
                input("Enter ends it. ")
        print()

    def _options(self) -> str:
        """Of `tpuenv submit`: the first team and its first pool group, where there are several."""
        team = self.environment.teams[0]
        chosen = f" --team {team.name}" if len(self.environment.teams) > 1 else ""
        return chosen + (f" --group {team.pools[0]}" if len(team.pools) > 1 else "")

    def _cluster(self) -> str:
        from rehearsal.google.network import CLUSTER

        return self.world.cloud.find(CLUSTER)[0].name


def _changes(stack: StackRun) -> str:
    """The part of a plan that says what would change."""
    marks = ("# ", "~ ", "+ ", "- ", "-/+ ")
    return "\n".join(f"    {line}" for line in stack.text.splitlines() if line.strip().startswith(marks))
