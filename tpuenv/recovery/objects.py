"""One stack's objects: what exists in the cloud and is in no state is brought into the state; what differs is told."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tpuenv.failure import Failed
from tpuenv.google.clients import Clients
from tpuenv.recovery.unmanaged import Looked, Object, bring, look, unprotected_plan
from tpuenv.review.changes import Change
from tpuenv.review.changes_text import heading
from tpuenv.review.plans import PLAN_FILE, Plan, PlanFailed, plan_stack
from tpuenv.terminal.dialog import Dialog
from tpuenv.terraform.process import Terraform

# https://developer.hashicorp.com/terraform/language/meta-arguments/lifecycle#prevent_destroy
_PROTECTED = re.compile(r"Resource (\S+)(?: \([^)]*\))? has lifecycle\.prevent_destroy set")

_WORDS = {"change": "changed in place", "delete": "deleted", "forget": "forgotten"}

_NOTHING = Looked(found=(), unclear={})


@dataclass(frozen=True, kw_only=True)
class Objects:
    """The objects of the stack in whose folder `terraform` is ready to work."""

    clients: Clients
    terraform: Terraform
    dialog: Dialog

    @property
    def _name(self) -> str:
        return self.terraform.stack.name

    def lines(self) -> list[str]:
        """What exists and is in no state, and what cannot be told, a line each. Changes nothing. Raises Failed."""
        looked, missing = self.seen()
        lines = [f"{self._name} cannot be looked at until {missing}."] if missing else []
        return [*lines, *in_no_state(looked), *looked.unclear.values()]

    def seen(self) -> tuple[Looked, str]:
        """What exists and is in no state; or what has to exist before that can be told. Raises Failed."""
        planned, looked = self._looked(())
        return looked, planned.missing if planned else ""

    def own(self) -> None:
        """Imports what is found, after a question, until nothing more is. Raises Failed."""
        known: list[str] = []
        while True:
            planned, looked = self._looked(known)
            for line in looked.unclear.values():
                self.dialog.leave(f"{self._name}: {line}")
            known += looked.unclear
            if not looked.found or not self._import(looked.found):
                break
            known += [found.address for found in looked.found]
        if planned is not None:
            self._tell(planned)

    def _looked(self, known: Sequence[str]) -> tuple[Plan | None, Looked]:
        """The stack's plan, and what it would create that exists already, but for the addresses `known`.

        No plan where protection refuses it, perhaps because of what is found. Raises Failed.
        """
        try:
            planned = plan_stack(self.terraform, salt="recover", lock=["-lock=false"])
        except PlanFailed as failure:
            protected = self._protected(failure)
            if protected is failure:
                raise
            looked = look(self.terraform, unprotected_plan(self.terraform.stack), self.clients, known=known)
            if not looked.found:
                raise protected from failure
            return None, looked
        finally:
            (self.terraform.stack.folder / PLAN_FILE).unlink(missing_ok=True)
        if planned.missing:
            return planned, _NOTHING
        return planned, look(self.terraform, planned.json, self.clients, known=known)

    def _protected(self, failure: PlanFailed) -> Failed:
        """What is half made is replaced by the next deploy, and what is protected must not be replaced."""
        addresses = dict.fromkeys(_PROTECTED.findall(" ".join(failure.output.split())))
        if not addresses:
            return failure
        folder = self.terraform.stack.folder
        return Failed(
            f"the next deploy would make {', '.join(addresses)} anew, which its protection refuses. Either its "
            "creation was not finished (it is tainted), or it was changed by hand.\n"
            f"  If it is whole:  terraform -chdir={folder} untaint {next(iter(addresses))}\n"
            f"  If it is not:    DELETION_PROTECTION=false tpuenv deploy {self._name}"
        )

    def _import(self, found: Sequence[Object]) -> bool:
        """Whether they were imported, as far as Terraform could."""
        self.dialog.say(f"  {self._name}: {len(found)} in the cloud, but in no state")
        for each in found:
            self.dialog.say(f"    {each}")
        if not self.dialog.ask(f"Import {'them' if len(found) > 1 else 'it'}? The cloud is not changed by that."):
            self.dialog.left.append(f"{self._name}: {len(found)} in the cloud, but in no state")
            return False
        for number, each in enumerate(found, start=1):
            said = bring(self.terraform, each)
            self.dialog.say(f"    [{number}/{len(found)}] {'NOT ' if said else ''}imported {each.address}")
            if said:
                self.dialog.leave(f"{self._name}: {each} cannot be imported: {said}")
        return True

    def _tell(self, planned: Plan) -> None:
        """What the next deploy does, as far as it is more than to create."""
        if planned.missing:
            self.dialog.say(f"  {self._name}: cannot be looked at until {planned.missing}: deploy, then recover again")
            return
        self.dialog.say(f"  {self._name}: to do for a deploy: {heading(planned.changes)}")
        for change in planned.changes.resources:
            if change.action not in ("create", "read"):
                self.dialog.say(f"    {_told(change)}")
        for line in _half_made(planned.json):
            self.dialog.say(f"    {line}")


def in_no_state(looked: Looked) -> list[str]:
    """A line for each object."""
    return [f"In the cloud, but in no state: {found}" for found in looked.found]


def _told(change: Change) -> str:
    anew = change.action == "replace"
    words = "made anew" if anew else _WORDS.get(change.action, change.action)
    values = [value.path for value in change.values if (value.replaces if anew else value.before != value.after)]
    attributes = list(dict.fromkeys(re.split(r"[.\[]", path, maxsplit=1)[0] for path in values))
    why = [*([change.reason] if change.reason else []), *([", ".join(attributes)] if attributes else [])]
    return f"{change.address} would be {words}" + (f" ({'; '.join(why)})" if why else "")


def _half_made(shown: Mapping[str, Any]) -> Iterator[str]:
    """What Terraform has in its state and Helm or GKE did not finish."""
    for each in shown.get("resource_changes", ()):
        before = each["change"].get("before") or {}
        if each["type"] == "helm_release" and before.get("status") not in (None, "deployed"):
            yield (
                f"{each['address']}: Helm says '{before['status']}': the next deploy upgrades it; if that stops with "
                f'"another operation is in progress": helm rollback -n {before.get("namespace")} {before.get("name")}'
            )
        if each["type"] == "google_container_cluster" and before and not before.get("endpoint"):
            yield (
                f"{each['address']}: it has no endpoint: `gcloud container clusters describe` says why. In the status "
                "ERROR it is of no use: DELETION_PROTECTION=false tpuenv deploy cluster -- after `terraform taint`"
            )
