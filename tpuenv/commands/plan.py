"""`tpuenv plan`: what a deploy would do, stack by stack: to read, to record, and to see that nothing has drifted."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from environment import Environment, project
from tpuenv.failure import Failed
from tpuenv.google import login
from tpuenv.recovery import advice
from tpuenv.review import records
from tpuenv.review.plans import Plan, PlanFailed, initialize_read_only, plan_stack
from tpuenv.terraform.errors import no_login
from tpuenv.terraform.stacks import OUTPUT, PIPELINE, Stack, selected_stacks, synthesize

_DESCRIPTION = """\
Plans each stack with Terraform and changes nothing: what would be made, changed,
replaced or deleted, with every value that changes. It reads the state without
taking its lock. A stack that needs what an earlier one has not made yet is said to
be not plannable until then; that is no failure. The pipeline stack is left out
unless it is named.
"""

_EPILOG = """\
examples:
  tpuenv plan
  tpuenv plan queues
  tpuenv plan --record gs://BUCKET     what `tpuenv apply --reviewed gs://BUCKET` compares with
  tpuenv plan --expect-no-changes      has anything changed behind Terraform's back?

Exit codes: 0 planned, with or without changes; 1 a stack could not be planned, or with
--expect-no-changes something would change; 2 wrong settings or arguments.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "plan",
        help="what a deploy would do, with every value that changes",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stacks", nargs="*", metavar="STACK", help=f"only these; all but {PIPELINE} if none is named")
    parser.add_argument(
        "--record", metavar="DESTINATION", help="keep what was planned in gs://BUCKET or in a local folder"
    )
    parser.add_argument(
        "--expect-no-changes", action="store_true", help="fail if anything would change: the drift check"
    )
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where to synthesize (default: cdktf.out)")


def run(args: argparse.Namespace) -> int:
    wanted = project.real()
    login.require(wanted.settings.project_id)
    kept = records.store(args.record, wanted) if args.record else None
    stacks = synthesize(args.output.absolute())
    key, commit = records.digest(stacks), records.commit()
    plans, failed = [], []
    for stack in selected_stacks(stacks, args.stacks):
        try:
            plans.append(_planned(wanted, stack, key))
        except PlanFailed as failure:
            told = f"\n{failure}{advice.told(wanted, [stack], failure.output)}"
            if no_login(failure.output):
                raise Failed(told) from failure  # it would be said of every stack
            # The others are worth knowing as well.
            failed.append(stack.name)
            print(told, flush=True)
            continue
        if kept is not None:
            print(f"  recorded in {kept.write(plans[-1].record(key, commit))}", flush=True)
    print(f"\n{_summary(plans, failed)}")
    changed = [each.stack.name for each in plans if not each.empty]
    if args.expect_no_changes and changed:
        raise Failed(f"changes: none were expected, but {', '.join(changed)} would change. {put_back(wanted)}")
    return 1 if failed else 0


def put_back(wanted: Environment) -> str:
    """What to do about it. A build that deploys asks anew for what its review did not have."""
    settings = wanted.settings
    why = "Somebody changed the cloud by hand, or a commit was not deployed."
    if not settings.build_repository:
        return f"{why} `tpuenv deploy` makes it what the code says"
    return (
        f"{why} To make it what the code says, run and approve the deploy:\n"
        f"  gcloud builds triggers run {wanted.names.trigger('deploy')} --branch={settings.build_branch} "
        f"--region={settings.build_region} --project={settings.project_id}\n"
        "A change by hand was not reviewed, so that build shows the plan above, records it, and asks for one more "
        "approval before it puts that back. To keep the change, write it into the code"
    )


def _planned(wanted: Environment, stack: Stack, key: str) -> Plan:
    with initialize_read_only(stack, wanted) as terraform:
        found = plan_stack(terraform, salt=key, lock=["-lock=false"])
        found.show()
        found.file.unlink(missing_ok=True)
    return found


def _summary(plans: Sequence[Plan], failed: Sequence[str]) -> str:
    parts = {
        "changes": [each.stack.name for each in plans if not each.empty and not each.missing],
        "no changes": [each.stack.name for each in plans if each.empty],
        "not plannable yet": [each.stack.name for each in plans if each.missing],
        "failed": list(failed),
    }
    return "\n".join(f"{words}: {', '.join(names)}" for words, names in parts.items() if names)
