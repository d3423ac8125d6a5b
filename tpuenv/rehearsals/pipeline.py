"""The rehearsal of the pipeline: its builds, from a project with only foundation and pipeline back to an empty one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from environment import Environment, project
from tpuenv.rehearsals import build_log
from tpuenv.rehearsals.parts import PROTECTED, UNPROTECTED, Parts
from tpuenv.terminal.progress import Progress

if TYPE_CHECKING:
    from rehearsal.build_service import CloudBuild, Ran
    from rehearsal.cloudbuild.builds import Build
    from rehearsal.world import World

_NODE_POOL = "google_container_node_pool"
_BUILDS = "cloudbuild_build"


class PipelineRehearsal(Parts):
    """The parts of `tpuenv rehearse-pipeline`. `changed` are files in which the commit differs from the checkout.

    Without `tests`, the test build of a pull request is not run.
    """

    def __init__(
        self,
        world: World,
        environment: Environment,
        changed: Mapping[str, str],
        *,
        tests: bool = True,
        verbose: bool = False,
    ) -> None:
        from rehearsal.build_service import CloudBuild
        from rehearsal.cloudbuild.images import Images

        super().__init__(world, environment)
        self.changed = changed
        self.tests = tests
        self.verbose = verbose
        images = Images(builder=environment.settings.builder_image)
        self.builds: CloudBuild = CloudBuild(world=world, images=images, log_line=self._build_line)
        self.commit = ""

    def run(self) -> int:
        """All parts in order, as far as what they need is there; the exit code."""
        names = self.environment.names
        print(f"Rehearsing the pipeline of {names.cluster} in project {self.world.project.id_}: nothing is real.\n")
        if self._person_deploys() and self._plans() and self._deploys():
            self._drifts()
            self._plans_again()
            self._refuses_to_destroy()
            if self._destroys():
                self._person_destroys()
        return self.summary()

    def _person_deploys(self) -> bool:
        from rehearsal.cloudbuild.resources import connect

        with self.part("A person: connects the repository, cdktf deploy foundation pipeline, twice"):
            connect(self.world.cloud, self.environment.settings.build_repository)
            for again in (False, True):
                run = self.cdktf(
                    "deploy", PROTECTED, "foundation", "pipeline", failure="foundation and pipeline were not deployed"
                )
                if run.code:
                    return False
                if again and not all(stack.unchanged for stack in run.stacks):
                    self.wrong("deployed a second time, foundation or pipeline changes")
            self.commit = self.builds.commit(project.ROOT, changed=self.changed)
        return True

    def _tested(self) -> bool:
        """Opens a pull request; whether its tests succeed."""
        started = self.builds.pull_request(self.commit, branch="change", base=self.environment.settings.build_branch)
        if [(self._name(build), build.status) for build in started] != [(self._trigger("test"), "QUEUED")]:
            self.wrong(f"a pull request starts {self._names(started)}; its tests should just run, and nothing else")
            return False
        return not self.tests or self._run_build(started[0]) is not None

    def _planned(self) -> Ran | None:
        """The plan build of the pull request, if there is one and it succeeds. The tests, which a comment starts once
        more, have run.
        """
        started = self.builds.comment(self.commit, branch="change", base=self.environment.settings.build_branch)
        plans = [build for build in started if self._name(build) == self._trigger("plan")]
        if [build.status for build in plans] != ["QUEUED"]:
            self.wrong(f"a comment starts {self._names(started)}; a plan should just run")
            return None
        return self._run_build(plans[0])

    def _plans(self) -> bool:
        with self.part("A pull request: its tests"):
            if not self._tested():
                return False
        with self.part("A collaborator comments /gcbrun: plan on a project that has only foundation"):
            return self._planned() is not None

    def _deploys(self) -> bool:
        with self.part("Merged: deploy, as often as it asks for an approval"):
            started = self.builds.push(self.commit, branch=self.environment.settings.build_branch)
            if not started or started != self.builds.waiting():
                self.wrong("a push does not start one build that waits for an approval")
                return False
            while waiting := self.builds.waiting():
                if self._run_build(self.builds.approve(waiting[0])) is None:
                    return False
            return True

    def _plans_again(self) -> None:
        with self.part("Another pull request of the same content: no changes, and its first record stays"):
            if ran := self._planned():
                changes = re.search(r": (changes|not plannable yet|failed): ", ran.log)
                self.check_tokens()
                if changes or not re.search(r": no changes: \S", ran.log):
                    self.wrong("the plan of what was just deployed is not empty\n" + build_log.end(ran))
                if "not recorded: " not in ran.log or " recorded in " in ran.log:
                    self.wrong("the plan build has replaced a record\n" + build_log.end(ran))

    def _drifts(self) -> None:
        """What is on record, the creation of the pool among it, was applied."""
        with self.part("The nightly drift check: nothing; a node pool changed by hand; put back after an approval"):
            self._run_build(self._start("drift"))
            change = self._changed_by_hand()
            self._run_build(self._start("drift"), fails=(change, f"triggers run {self._trigger('deploy')}"))
            for build in self._ask_for_approval(change):
                ran = self._run_build(self.builds.approve(build))
                if ran and f"{change}\n" not in ran.log:
                    self.wrong("what was approved was not put back")

    def _changed_by_hand(self) -> str:
        """Raises the limit of the CPU pool; the line of a plan that puts it back."""
        name = self.environment.names.cpu_pool
        pool = next(item for item in self.world.cloud.find(_NODE_POOL) if item.attributes["name"] == name)
        limit = pool.attributes["autoscaling"][0]["max_node_count"]
        self.world.cloud.change(
            _NODE_POOL, pool.name, lambda values: values["autoscaling"][0].update(max_node_count=limit + 5)
        )
        return f"max_node_count: {limit + 5} -> {limit}"

    def _ask_for_approval(self, change: str) -> list[Build]:
        """A deploy, which shows the change and asks for approval, because no review had it. The builds that wait."""
        before = self._environment()
        ran = self._run_build(self.builds.approve(self._start("deploy")))
        waiting = self.builds.waiting()
        if ran and (change not in ran.log or "not reviewed yet" not in ran.log or len(waiting) != 1):
            self.wrong("a deploy does not show what was changed by hand, or does not ask for approval of it")
        if self._environment() != before:
            self.wrong("a change that nobody has reviewed was applied")
        return waiting

    def _refuses_to_destroy(self) -> None:
        with self.part("Destroy with a wrong confirmation: must be refused"):
            before = self._environment()
            build = self._start("destroy", _CONFIRM="yes")
            if build.status != "PENDING":
                self.wrong("destroy does not wait for an approval")
            else:
                self._run_build(self.builds.approve(build), fails=("yes", self.environment.names.prefix))
            if self._environment() != before:
                self.wrong("something was destroyed nevertheless")

    def _destroys(self) -> bool:
        from rehearsal import inventory

        with self.part("Destroy with the right one: all but foundation and the pipeline"):
            build = self._start("destroy", _CONFIRM=self.environment.names.prefix)
            ran = self._run_build(self.builds.approve(build))
            left = {
                row.stack
                for row in inventory.by_stack(self.world.cloud, self.world.project.state_bucket)
                if row.resources
            }
            if ran and left != {"foundation", "pipeline"}:
                self.wrong(f"resources are left in {', '.join(sorted(left)) or 'no stack'}")
        return ran is not None

    def _person_destroys(self) -> None:
        words = " ".join(f"{key}={value}" for key, value in UNPROTECTED.items())
        with self.part(f"A person: {words} cdktf deploy foundation pipeline, cdktf destroy '*'"):
            # Buckets with objects may go only when their state says so.
            self.cdktf("deploy", UNPROTECTED, "foundation", "pipeline", failure="the last deploy failed")
            self.cdktf("destroy", UNPROTECTED, failure="destroy failed")
            self.check_remains("the project, its enabled APIs, the state bucket and the connection", _BUILDS)

    def _start(self, build: str, **substitutions: str) -> Build:
        settings = self.environment.settings
        return self.builds.start(
            self._trigger(build), commit=self.commit, branch=settings.build_branch, **substitutions
        )

    def _run_build(self, build: Build, *, fails: Sequence[str] = ()) -> Ran | None:
        """Runs a build. It has to succeed or, where words are named that its log must have, to fail with them.

        None, and a problem, if it does not.
        """
        print(f"  build of {self._name(build)}", flush=True)
        with Progress() as self.progress:
            ran = self.builds.run(build)
        for done in ran.steps:
            print(f"    {done.step.id_:8} {done.seconds:6.1f} s  {done.status}", flush=True)
        if fails and ran.status == "FAILURE":
            missing = [word for word in fails if word not in ran.log]
            if not missing:
                print(f"    failed as it should: {build_log.last_line_with(ran, fails[0])}", flush=True)
                return ran
            expected = ", ".join(repr(word) for word in missing)
            why = f"{build_log.cause(ran)} (it should have failed saying {expected})"
            self.wrong(f"{self._name(build)}: {why}\n{build_log.end(ran)}")
        elif fails:
            self.wrong(f"{self._name(build)}: should have failed, and is {ran.status}")
        elif ran.status != "SUCCESS":
            self.wrong(f"{self._name(build)}: {ran.status}: {build_log.cause(ran)}\n{build_log.end(ran)}")
        else:
            return ran
        return None

    def _trigger(self, build: str) -> str:
        return self.environment.names.trigger(build)

    def _names(self, builds: Sequence[Build]) -> str:
        return ", ".join(f"{self._name(build)} ({build.status})" for build in builds) or "nothing"

    def _name(self, build: Build) -> str:
        from rehearsal.cloudbuild.triggers import trigger

        return trigger(self.world.cloud, build.trigger).name

    def _build_line(self, line: str) -> None:
        """Shows which step of a build runs, and prints the lines of its log about whole stacks; all with --verbose."""
        if step := re.fullmatch(r"Starting Step #\d+ - '(\w+)'", line):
            self.progress.doing(step[1])
        if self.verbose:
            self.progress.line(f"    {line}")
        elif stack := re.fullmatch(r"Step #\d+ - '\w+': ((?!warning)[a-z-]+: .*|Waiting for approval: .*)", line):
            self.progress.line(f"    {stack[1]}")

    def _environment(self) -> dict[tuple[str, str], str]:
        """What exists except builds, logs and the state, whose lock comes and goes."""
        objects = self.world.cloud.snapshot()
        return {key: value for key, value in objects.items() if not key[0].startswith(("blob ", _BUILDS))}
