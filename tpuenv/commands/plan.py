"""`tpuenv plan`: what a deploy would do, stack by stack: to read, to record, and to detect drift."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from environment import Environment, project
from environment.list_prices import Prices
from environment.names import PIPELINE
from tpuenv.commands import options
from tpuenv.commands.command import command
from tpuenv.cost import estimate, paid, report_text
from tpuenv.cost.prices import load
from tpuenv.failure import Failed
from tpuenv.google import login
from tpuenv.recovery import advice
from tpuenv.review import records
from tpuenv.review.plans import Plan, PlanFailed, initialize_read_only, plan_stack
from tpuenv.terraform.errors import no_login
from tpuenv.terraform.stacks import Stack, selected_stacks, synthesize


@command(
    summary="what a deploy would do, with every value that changes",
    examples=(
        "tpuenv plan",
        "tpuenv plan queues",
        "tpuenv plan --record gs://BUCKET   what `tpuenv apply` compares with",
        "tpuenv plan --expect-no-changes    has anything changed behind Terraform?",
    ),
    notes="Exit codes: 0 planned, with or without changes; 1 a stack could not be planned, or with --expect-no-changes "
    "something would change; 2 wrong settings or arguments.",
)
@options.stacks(f"all but {PIPELINE}")
@options.value("--record", "DESTINATION", "keep what was planned in gs://BUCKET or in a local folder")
@options.prices
@options.flag("--expect-no-changes", "fail if anything would change: the drift check")
@options.output()
def plan(
    *, stacks: tuple[str, ...], record: str | None, prices: Path | None, expect_no_changes: bool, output: Path
) -> int:
    """Plans each stack with Terraform and changes nothing: what would be created, changed, replaced or destroyed, with
    every value that changes. It reads the state without taking its lock. A stack that needs what an earlier one has
    not created yet is reported as not plannable until then; that is no failure. The pipeline stack is left out unless
    it is named, and beside it the stack tpu-vms. A stack that was deployed and that the settings no longer have is
    named. Where node pools, TPU VMs or the cluster change, the end says what
    that changes of the cost an hour.
    """
    environment = project.load_for_google()
    known = load(prices, environment.settings.region)
    login.require(environment.settings.project_id)
    store = records.store(record, environment) if record else None
    synthesized = synthesize(output.absolute())
    key, commit = records.digest(synthesized), records.commit()
    plans, failed = [], []
    for stack in selected_stacks(synthesized, stacks):
        try:
            plans.append(_planned(environment, stack, key))
        except PlanFailed as failure:
            explained = f"\n{failure}{advice.after_failure(environment, [stack], failure.output)}"
            if no_login(failure.output):
                raise Failed(explained) from failure  # the other stacks would fail with the same
            failed.append(stack.name)
            print(explained, flush=True)
            continue
        if store is not None:
            print(f"  {store.add(plans[-1].record(key, commit))}", flush=True)
    print(f"\n{_summary(plans, failed)}")
    for line in _cost(plans, known):
        print(line)
    for line in advice.removed_stacks(environment, synthesized):
        print(line)
    changed = [planned.stack.name for planned in plans if not planned.empty]
    if expect_no_changes and changed:
        raise Failed(f"changes: none were expected, but {', '.join(changed)} would change. {put_back(environment)}")
    return 1 if failed else 0


def put_back(environment: Environment) -> str:
    """What to do about drift. A build that deploys asks for approval of what its review did not have."""
    settings = environment.settings
    why = "Somebody changed the cloud by hand, or a commit was not deployed."
    if not settings.build_repository:
        return f"{why} `tpuenv deploy` makes it what the code says"
    return (
        f"{why} To make it what the code says, run and approve the deploy:\n"
        f"  gcloud builds triggers run {environment.names.trigger('deploy')} --branch={settings.build_branch} "
        f"--region={settings.build_region} --project={settings.project_id}\n"
        "A change by hand was not reviewed, so that build shows the plan above, records it, and asks for one more "
        "approval before it puts that back. To keep the change, write it into the code"
    )


def _planned(environment: Environment, stack: Stack, key: str) -> Plan:
    with initialize_read_only(stack, environment) as terraform:
        planned = plan_stack(terraform, salt=key, lock=["-lock=false"])
        planned.show()
        planned.file.unlink(missing_ok=True)
    return planned


def _cost(plans: Sequence[Plan], prices: Prices) -> Iterator[str]:
    json = [planned.json for planned in plans]
    before, after = (estimate.everything(paid.of_plans(json, side), prices) for side in ("before", "after"))
    return report_text.difference(before, after, prices.used)


def _summary(plans: Sequence[Plan], failed: Sequence[str]) -> str:
    parts = {
        "changes": [planned.stack.name for planned in plans if not planned.empty and not planned.missing],
        "no changes": [planned.stack.name for planned in plans if planned.empty],
        "not plannable yet": [planned.stack.name for planned in plans if planned.missing],
        "failed": list(failed),
    }
    return "\n".join(f"{words}: {', '.join(names)}" for words, names in parts.items() if names)
