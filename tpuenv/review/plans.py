"""Plans one stack with Terraform: what it would do, or why it cannot be planned yet."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from environment import Environment
from tpuenv.failure import Failed
from tpuenv.review import changes
from tpuenv.review.changes import NO_CHANGES, Changes
from tpuenv.review.changes_text import heading, lines
from tpuenv.review.records import Record
from tpuenv.terraform.messages import Messages
from tpuenv.terraform.process import Terraform
from tpuenv.terraform.stacks import Stack

PLAN_FILE = "tpuenv.plan"  # in the stack's folder; it holds sensitive values

# The data source by which the stacks read the cluster: stacks/base.py.
_CLUSTER = "data.google_container_cluster."

# The permission that an identity lacks which may only read.
_WRITE = "storage.objects.create"

# Terraform merges it over the stack's own backend. https://developer.hashicorp.com/terraform/language/files/override
_EMPTY_STATE: dict[str, object] = {"terraform": {"backend": {"local": {}}}}


class PlanFailed(Failed):
    """Terraform could not plan; `output` is what it printed."""

    def __init__(self, stack: Stack, output: str) -> None:
        super().__init__(f"{stack.name}: Terraform could not plan.\n{output}")
        self.output = output


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A stack's plan. `missing` says what has to exist before there can be one; there is none then.

    `json` is the plan as `terraform show -json` prints it, with sensitive values.
    """

    stack: Stack
    terraform: str
    changes: Changes = NO_CHANGES
    missing: str = ""
    json: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def empty(self) -> bool:
        return not self.missing and self.changes.empty

    @property
    def file(self) -> Path:
        """What Terraform applies."""
        return self.stack.folder / PLAN_FILE

    def show(self) -> None:
        """Prints a heading and what would happen."""
        print(f"\n{self.stack.name}: {self.heading}")
        for line in lines(self.changes):
            print(line)
        sys.stdout.flush()

    @property
    def heading(self) -> str:
        return f"not plannable until {self.missing}" if self.missing else heading(self.changes)

    def record(self, digest: str, commit: str) -> Record:
        """What is kept of it."""
        return Record(
            stack=self.stack.name,
            commit=commit,
            digest=digest,
            terraform=self.terraform,
            changes=self.changes,
            not_plannable=self.missing,
        )


def initialize(stack: Stack) -> Terraform:
    """Terraform, initialized in the stack's folder. Raises PlanFailed."""
    terraform = Terraform(stack=stack)
    # The folder may be left from another environment, with another state.
    process = terraform.run("init", "-input=false", "-no-color", "-reconfigure")
    if process.returncode:
        raise PlanFailed(stack, process.stdout.strip())
    return terraform


@contextmanager
def initialize_read_only(stack: Stack, environment: Environment) -> Iterator[Terraform]:
    """As `initialize`, also for an identity that may not write a state. Raises PlanFailed.

    Where a stack has no state yet, `terraform init` writes an empty one. An identity that may not do so gets an empty
    state in a temporary folder, which gives the same plan.
    """
    try:
        terraform = initialize(stack)
    except PlanFailed as failure:
        if _WRITE not in failure.output or _has_state(stack, environment):
            raise
    else:
        yield terraform
        return
    with tempfile.TemporaryDirectory(prefix="tpuenv-") as folder:
        yield initialize(_with_empty_state(stack, Path(folder)))


def _has_state(stack: Stack, environment: Environment) -> bool:
    # Not before it is needed: Google's libraries take a second to load.
    from tpuenv.google.clients import connect
    from tpuenv.state import versions

    return versions.exists(connect(environment.settings.project_id), environment.names, stack.name)


def _with_empty_state(stack: Stack, folder: Path) -> Stack:
    (folder / "cdk.tf.json").write_text(json.dumps(stack.configuration), encoding="utf-8")
    (folder / "backend_override.tf.json").write_text(json.dumps(_EMPTY_STATE), encoding="utf-8")
    if (stack.folder / "assets").exists():
        (folder / "assets").symlink_to((stack.folder / "assets").resolve())
    return Stack(name=stack.name, folder=folder, dependencies=stack.dependencies)


def plan_stack(terraform: Terraform, *, salt: str, lock: Sequence[str]) -> Plan:
    """Plans into PLAN_FILE. `lock` are Terraform's options about the state's lock. Raises PlanFailed."""
    stack = terraform.stack
    (stack.folder / PLAN_FILE).unlink(missing_ok=True)
    process = terraform.run("plan", "-input=false", "-json", f"-out={PLAN_FILE}", *lock)
    messages = Messages.of(process.stdout)
    if process.returncode and (missing := _missing(messages)):
        return Plan(stack=stack, terraform=messages.version, missing=missing)
    if process.returncode:
        raise PlanFailed(stack, messages.errors)
    for warning in messages.warnings:
        print(f"warning: {stack.name}: {warning}", file=sys.stderr)
    plan = json.loads(terraform.read("show", "-json", PLAN_FILE))
    return Plan(
        stack=stack,
        terraform=plan["terraform_version"],
        changes=changes.read(plan, salt=f"{salt}/{stack.name}"),
        json=plan,
    )


def _missing(messages: Messages) -> str:
    """What the errors say does not exist yet; "" as soon as one of them says anything else."""
    missing = [_missing_object(diagnostic) for diagnostic in messages.diagnostics("error")]
    return " and ".join(dict.fromkeys(missing)) if all(missing) else ""


def _missing_object(diagnostic: Mapping[str, Any]) -> str:
    """Of the two errors that mean that an earlier stack was not applied yet, what that stack creates; else "".

    The first are the words of the Google provider for a cluster that does not exist, the second those of the
    Kubernetes provider for an object of a kind that the cluster does not know, because its chart is not installed yet.
    """
    address, summary = diagnostic.get("address") or "", diagnostic["summary"]
    if address.startswith(_CLUSTER) and summary.endswith(" not found") and "/clusters/" in summary:
        return "the cluster exists (stack cluster)"
    if address.startswith("kubernetes_manifest.") and "API did not recognize GroupVersionKind" in summary:
        return "its kinds of objects exist in the cluster (stack platform)"
    return ""
