"""Imports what exists in the cloud and is in no state, and says what the next deploy of the stack would do.

`terraform import` changes nothing but the state. An apply with `import` blocks would not keep that promise: it also
makes the changes that the plan has for these objects and for those that they depend on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tpuenv.google.clients import Clients
from tpuenv.recovery.search import CloudObject, search
from tpuenv.review.changes import Change
from tpuenv.review.changes_text import heading
from tpuenv.review.plans import Plan
from tpuenv.terminal.dialog import Dialog
from tpuenv.terraform.process import Terraform

_WORDS = {"change": "changed in place", "delete": "deleted", "forget": "forgotten", "replace": "replaced"}


def import_objects(clients: Clients, terraform: Terraform, dialog: Dialog) -> None:
    """Imports, after a question, until nothing more is in no state: an import may give the ids of others.

    Raises Failed.
    """
    stack = terraform.stack.name
    skip: set[str] = set()
    while True:
        result = search(terraform, clients, skip=skip)
        for line in result.undecided.values():
            dialog.leave(f"{stack}: {line}")
        if not result.objects or not _import(terraform, result.objects, dialog):
            break
        skip.update(result.undecided, (object_.address for object_ in result.objects))
    if result.plan is not None:
        _show_next_deploy(result.plan, dialog)


def _import(terraform: Terraform, objects: Sequence[CloudObject], dialog: Dialog) -> bool:
    """Whether they were imported, as far as Terraform could."""
    stack = terraform.stack.name
    summary = f"{stack}: {len(objects)} in the cloud, but in no state"
    dialog.say(f"  {summary}")
    for object_ in objects:
        dialog.say(f"    {object_}")
    if not dialog.ask(f"Import {'them' if len(objects) > 1 else 'it'}? The cloud is not changed by that."):
        dialog.to_do.append(summary)
        return False
    for number, object_ in enumerate(objects, start=1):
        process = terraform.run(
            "import", "-input=false", "-no-color", "-lock-timeout=60s", object_.address, object_.id_
        )
        failed = process.returncode != 0
        dialog.say(f"    [{number}/{len(objects)}] {'NOT ' if failed else ''}imported {object_.address}")
        if failed:
            dialog.leave(f"{stack}: {object_} cannot be imported: {process.stdout.strip()}")
    return True


def _show_next_deploy(plan: Plan, dialog: Dialog) -> None:
    """What the next deploy does, as far as it is more than to create."""
    stack = plan.stack.name
    if plan.missing:
        dialog.say(f"  {stack}: cannot be searched until {plan.missing}: deploy, then recover again")
        return
    dialog.say(f"  {stack}: to do for a deploy: {heading(plan.changes)}")
    for change in plan.changes.resources:
        if change.action not in ("create", "read"):
            dialog.say(f"    {_change_text(change)}")
    for line in _unfinished(plan.json):
        dialog.say(f"    {line}")


def _change_text(change: Change) -> str:
    replaced = change.action == "replace"
    paths = [value.path for value in change.values if (value.replaces if replaced else value.before != value.after)]
    attributes = list(dict.fromkeys(re.split(r"[.\[]", path, maxsplit=1)[0] for path in paths))
    reasons = [*([change.reason] if change.reason else []), *([", ".join(attributes)] if attributes else [])]
    text = f"{change.address} would be {_WORDS.get(change.action, change.action)}"
    return text + (f" ({'; '.join(reasons)})" if reasons else "")


def _unfinished(plan: Mapping[str, Any]) -> Iterator[str]:
    """What is in Terraform's state and Helm or GKE did not finish."""
    for resource in plan.get("resource_changes", ()):
        before = resource["change"].get("before") or {}
        if resource["type"] == "helm_release" and before.get("status") not in (None, "deployed"):
            yield (
                f"{resource['address']}: Helm says '{before['status']}': the next deploy upgrades it; if that stops "
                f'with "another operation is in progress": helm rollback -n {before.get("namespace")} '
                f"{before.get('name')}"
            )
        if resource["type"] == "google_container_cluster" and before and not before.get("endpoint"):
            yield (
                f"{resource['address']}: it has no endpoint: `gcloud container clusters describe` says why. In the "
                "status ERROR it is of no use: DELETION_PROTECTION=false tpuenv deploy foundation cluster -- after "
                "`terraform taint`"
            )
