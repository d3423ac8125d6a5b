"""Plans one stack with Terraform: what it would do, or why it cannot be planned yet."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tpuenv.failure import Failed, WrongArgument
from tpuenv.review import changes, records
from tpuenv.review.changes import NO_CHANGES, Changes
from tpuenv.review.changes_text import heading, lines
from tpuenv.review.records import Record
from tpuenv.terraform.stack import Stack, Terraform

PLAN_FILE = "tpuenv.plan"

# A person deploys it: a build must not change its own identity.
PIPELINE = "pipeline"

# The stacks that find the cluster by its name do so with this: stacks/base.py.
_CLUSTER = "data.google_container_cluster."


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A stack's plan. `missing` says what has to exist before there can be one; there is none then.

    `shown` is what `terraform show -json` said about it, with sensitive values.
    """

    stack: Stack
    terraform: str
    changes: Changes = NO_CHANGES
    missing: str = ""
    shown: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def empty(self) -> bool:
        return not self.missing and self.changes.empty

    @cached_property
    def file(self) -> Path:
        """What Terraform applies. It holds sensitive values."""
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


def digest(stacks: Sequence[Stack]) -> str:
    """The key of records: of everything that builds deploy."""
    return records.digest(stack for stack in stacks if stack.name != PIPELINE)


def record(planned: Plan, key: str, commit: str) -> Record:
    """What is kept of a plan."""
    return Record(
        stack=planned.stack.name,
        commit=commit,
        digest=key,
        terraform=planned.terraform,
        changes=planned.changes,
        not_plannable=planned.missing,
    )


def chosen(stacks: Sequence[Stack], names: Sequence[str]) -> list[Stack]:
    """The stacks that are named, else all but the pipeline, in the order of their deployment. Raises Failed."""
    refuse_unknown(stacks, [name for name in names if name not in {stack.name for stack in stacks}])
    return [stack for stack in stacks if (stack.name in names if names else stack.name != PIPELINE)]


def refuse_unknown(stacks: Sequence[Stack], unknown: Sequence[str]) -> None:
    """Raises WrongArgument when there is any."""
    if unknown:
        known = ", ".join(stack.name for stack in stacks)
        raise WrongArgument(f"'{unknown[0]}': there is no such stack; there are {known}")


class NotPlanned(Failed):
    """Terraform could not plan; `output` is what it said."""

    def __init__(self, stack: Stack, output: str) -> None:
        super().__init__(f"{stack.name}: Terraform could not plan.\n{output}")
        self.stack = stack
        self.output = output


def initialize(stack: Stack) -> Terraform:
    """Terraform ready to work in the stack's folder. Raises NotPlanned."""
    terraform = Terraform(stack=stack)
    # The folder may be left from another environment, with another state.
    done = terraform.run("init", "-input=false", "-no-color", "-reconfigure")
    if done.returncode:
        raise NotPlanned(stack, done.stdout.strip())
    return terraform


def plan(terraform: Terraform, *, salt: str, lock: Sequence[str]) -> Plan:
    """Plans into the file of the plan. `lock` are Terraform's options about the state's lock. Raises NotPlanned."""
    stack = terraform.stack
    (stack.folder / PLAN_FILE).unlink(missing_ok=True)
    done = terraform.run("plan", "-input=false", "-json", f"-out={PLAN_FILE}", *lock)
    said = Said.of(done.stdout)
    if done.returncode and (missing := said.missing):
        return Plan(stack=stack, terraform=said.version, missing=missing)
    if done.returncode:
        raise NotPlanned(stack, said.errors)
    for warning in said.warnings:
        print(f"warning: {stack.name}: {warning}", file=sys.stderr)
    found = json.loads(terraform.read("show", "-json", PLAN_FILE))
    read = changes.read(found, salt=f"{salt}/{stack.name}")
    return Plan(stack=stack, terraform=found["terraform_version"], changes=read, shown=found)


@dataclass(frozen=True, kw_only=True)
class Said:
    """What Terraform said with -json, a line each; what is no JSON it said before it knew of -json.

    https://developer.hashicorp.com/terraform/internals/machine-readable-ui
    """

    messages: Sequence[Mapping[str, Any]]
    plain: Sequence[str]

    @classmethod
    def of(cls, output: str) -> Said:
        messages, plain = [], []
        for line in output.splitlines():
            try:
                found = json.loads(line)
            except ValueError:
                found = None
            if isinstance(found, dict):
                messages.append(found)
            else:
                plain.append(line)
        return cls(messages=messages, plain=plain)

    @property
    def version(self) -> str:
        """Terraform's own; OpenTofu tells it under its own name."""
        told = next((each for each in self.messages if each.get("type") == "version"), {})
        return str(told.get("terraform") or told.get("tofu") or "unknown")

    def diagnostics(self, severity: str) -> list[Mapping[str, Any]]:
        """Those of one severity: "error" or "warning"."""
        found = (each["diagnostic"] for each in self.messages if each.get("type") == "diagnostic")
        return [each for each in found if each["severity"] == severity]

    @property
    def warnings(self) -> list[str]:
        return list(dict.fromkeys(each["summary"] for each in self.diagnostics("warning")))

    @property
    def errors(self) -> str:
        """As Terraform tells them to people."""
        told = [_error(each) for each in self.diagnostics("error")]
        return "\n\n".join(told or ["\n".join(self.plain).strip()])

    @property
    def missing(self) -> str:
        """What the errors say does not exist yet; "" as soon as one of them says anything else."""
        found = [_missing(each) for each in self.diagnostics("error")]
        return " and ".join(dict.fromkeys(found)) if all(found) else ""


def _error(diagnostic: Mapping[str, Any]) -> str:
    parts = [f"Error: {diagnostic['summary']}"]
    if address := diagnostic.get("address"):
        parts.append(f"  with {address}")
    if detail := diagnostic.get("detail"):
        parts.append(detail)
    return "\n".join(parts)


def _missing(diagnostic: Mapping[str, Any]) -> str:
    """Of the two errors that mean that a stack before this one was not applied yet, what it makes; else "".

    The first are the words of the Google provider for a cluster that is not there, the second those of the Kubernetes
    provider for an object of a kind that the cluster does not know, because no chart has brought it yet.
    """
    address, summary = diagnostic.get("address") or "", diagnostic["summary"]
    if address.startswith(_CLUSTER) and summary.endswith(" not found") and "/clusters/" in summary:
        return "the cluster exists (stack cluster)"
    if address.startswith("kubernetes_manifest.") and "API did not recognize GroupVersionKind" in summary:
        return "its kinds of objects exist in the cluster (stack platform)"
    return ""
