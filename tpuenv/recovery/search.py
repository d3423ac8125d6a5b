"""Searches for what exists in the cloud under the names of a stack's plan and is in no state. Changes nothing.

Terraform itself reads the objects, through its providers: a plan of a copy of the stack with `import` blocks says of
each whether it exists. https://developer.hashicorp.com/terraform/language/import
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tpuenv.failure import Failed
from tpuenv.google.clients import Clients
from tpuenv.recovery.import_ids import PlannedObject, planned_objects
from tpuenv.review.plans import PLAN_FILE, Plan, PlanFailed, plan_stack
from tpuenv.terraform.errors import protected
from tpuenv.terraform.messages import Messages
from tpuenv.terraform.process import Terraform
from tpuenv.terraform.stacks import Stack
from vocabulary.resource_types import Listing, UnknownResourceType, facts_of, is_described

# Google's provider takes some 300 MB of memory.
_AT_ONCE = 4

_SEARCH_PLAN = "search.plan"

_MISSING = re.compile(r'attempting to import an existing object to "(.+?)", the provider detected that no object')

# What the providers answer when their own import reads what does not exist: an HTTP status, Kubernetes' reasons, Helm's
# words, and the Google provider's for a member of a role.
_NOT_FOUND = re.compile(
    r"\b404\b|not ?found|does(n't| not) exist|cannot find binding|no matches for|did not recognize", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True)
class CloudObject:
    """An object in the cloud: its address in the stack, and its id for `terraform import`."""

    address: str
    id_: str

    def __str__(self) -> str:
        return f"{self.address} ({self.id_})"


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """`objects` exist and are in no state; `undecided` says of addresses why nobody knows, and what to do about it.

    `plan` is the stack's; None where protection refuses it, because of what is in no state.
    """

    objects: Sequence[CloudObject] = ()
    undecided: Mapping[str, str] = field(default_factory=dict)
    plan: Plan | None = None

    @property
    def missing(self) -> str:
        """What has to exist before the stack can be planned and so be searched for; "" when nothing is missing."""
        return self.plan.missing if self.plan else ""

    @property
    def lines(self) -> list[str]:
        """A line for each object."""
        return [f"In the cloud, but in no state: {object_}" for object_ in self.objects]


def search(terraform: Terraform, clients: Clients, *, skip: Collection[str] = ()) -> SearchResult:
    """Searches for what the stack's next deploy would create, but for the addresses in `skip`. Takes no lock.

    An object whose id depends on another one that is in no state is not searched for yet. Raises Failed.
    """
    try:
        plan = plan_stack(terraform, salt="recover", lock=["-lock=false"])
    except PlanFailed as failure:
        refused = protected(failure.output)
        if not refused:
            raise
        objects, undecided = _search(terraform.stack, _unprotected_plan(terraform.stack), clients, skip)
        if not objects:
            raise _would_replace(terraform.stack, list(refused)) from failure
        return SearchResult(objects=objects, undecided=undecided)
    finally:
        (terraform.stack.folder / PLAN_FILE).unlink(missing_ok=True)
    if plan.missing:
        return SearchResult(plan=plan)
    objects, undecided = _search(terraform.stack, plan.json, clients, skip)
    return SearchResult(objects=objects, undecided=undecided, plan=plan)


def _would_replace(stack: Stack, addresses: Sequence[str]) -> Failed:
    """What is half created is replaced by the next deploy, and what is protected must not be replaced."""
    return Failed(
        f"the next deploy would replace {', '.join(addresses)}, which its protection refuses. Either its creation was "
        "not finished (it is tainted), or it was changed by hand.\n"
        f"  If it is whole:  terraform -chdir={stack.folder} untaint {addresses[0]}\n"
        f"  If it is not:    DELETION_PROTECTION=false tpuenv deploy {stack.name}"
    )


def _unprotected_plan(stack: Stack) -> Mapping[str, Any]:
    """What the plan of the stack would be (`terraform show -json`) if nothing in it were protected; {} without one.

    Where a network is in no state, Terraform would replace what is in it, and protection refuses that before there is
    a plan that names the network.
    """
    configuration = stack.configuration
    for by_id in configuration.get("resource", {}).values():
        for resource in by_id.values():
            resource.get("lifecycle", {}).pop("prevent_destroy", None)
    with _copy(stack) as copy:
        terraform, _ = _plan_copy(copy, "unprotected", configuration)
        try:
            plan: Mapping[str, Any] = json.loads(terraform.run_read_only("show", "-json", _SEARCH_PLAN))
        except ValueError:
            return {}
        return plan


def _search(
    stack: Stack, plan: Mapping[str, Any], clients: Clients, skip: Collection[str]
) -> tuple[list[CloudObject], dict[str, str]]:
    """What exists of all that the plan would create, and what is undecided."""
    ids: dict[str, str] = {}
    listed: list[CloudObject] = []
    undecided: dict[str, str] = {}
    for planned in planned_objects(plan, stack.configuration):
        if planned.address in skip:
            continue
        if not is_described(planned.type_):
            undecided[planned.address] = f"{planned.address}: {_UNDECIDED}: {UnknownResourceType(planned.type_)}"
        elif facts_of(planned.type_).listing:
            search_by_name(clients, planned, listed, undecided)
        elif id_ := planned.import_id:
            ids[planned.address] = id_
    existing, unclear = _existing(stack, ids)
    return [*listed, *existing], {**undecided, **unclear}


_UNDECIDED = "it is not known whether it exists"


def _existing(stack: Stack, ids: Mapping[str, str]) -> tuple[list[CloudObject], dict[str, str]]:
    """All in one plan; and those that it says nothing about, because it failed for others, in a plan of their own."""
    remaining = dict(ids)
    existing: list[CloudObject] = []
    with _copy(stack) as copy:
        while remaining:
            messages = _plan_imports(copy, "all", remaining)
            imported = messages.imported
            errors = messages.diagnostics("error")
            missing = {address for error in errors for address in _MISSING.findall(error["detail"])}
            existing += [CloudObject(address=name, id_=id_) for name, id_ in remaining.items() if name in imported]
            count = len(remaining)
            remaining = {name: id_ for name, id_ in remaining.items() if name not in {*imported, *missing}}
            if len(remaining) == count:
                break
        objects = [CloudObject(address=address, id_=id_) for address, id_ in remaining.items()]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            answers = list(pool.map(lambda object_: _exists(copy, object_), objects))
    undecided = {}
    for object_, (exists, reason) in zip(objects, answers, strict=True):
        if exists:
            existing.append(object_)
        elif reason:
            undecided[object_.address] = reason
    return existing, undecided


def _exists(copy: Stack, object_: CloudObject) -> tuple[bool, str]:
    """Whether the object exists; or why that is undecided."""
    address = object_.address
    messages = _plan_imports(copy, address, {address: object_.id_}, f"-target={address}")
    errors = messages.diagnostics("error")
    # An error with the address comes from the plan, for which the object had been read before.
    if address in messages.imported or any(error.get("address") == address for error in errors):
        return True, ""
    texts = [f"{error['summary']} {error.get('detail')}" for error in errors]
    if texts and all(_MISSING.search(text) or _NOT_FOUND.search(text) for text in texts):
        return False, ""
    return False, f"{object_}: {_UNDECIDED}: {_first_lines(messages.errors)}"


def _plan_imports(copy: Stack, name: str, ids: Mapping[str, str], *options: str) -> Messages:
    """Terraform's messages about a plan with these imports."""
    blocks = [{"to": address, "id": id_} for address, id_ in ids.items()]
    return _plan_copy(copy, name, {**copy.configuration, "import": blocks}, *options)[1]


def _plan_copy(copy: Stack, name: str, configuration: Mapping[str, Any], *options: str) -> tuple[Terraform, Messages]:
    """Terraform in a folder of the plan's own, because it reads all JSON there, and its messages. The file
    _SEARCH_PLAN is there even if the plan failed, unless nothing could be planned.
    """
    folder = copy.folder / re.sub(r"[^a-zA-Z0-9_-]", "-", name) / copy.name
    folder.mkdir(parents=True, exist_ok=True)
    for path in copy.folder.iterdir():
        if path.is_symlink() and not (folder / path.name).is_symlink():
            (folder / path.name).symlink_to(path.resolve())
    (folder / "cdk.tf.json").write_text(json.dumps(configuration), encoding="utf-8")
    terraform = Terraform(stack=Stack(name=copy.name, folder=folder))
    output = terraform.run_read_only(
        "plan", "-input=false", "-json", "-lock=false", "-refresh=false", f"-out={_SEARCH_PLAN}", *options
    )
    return terraform, Messages.of(output)


@contextmanager
def _copy(stack: Stack) -> Iterator[Stack]:
    """A copy of the stack's folder, initialized: links to all that is beside its JSON."""
    with tempfile.TemporaryDirectory(prefix="tpuenv-") as folder:
        copy = Path(folder)
        for name in (".terraform", ".terraform.lock.hcl", "assets"):
            if (stack.folder / name).exists():
                (copy / name).symlink_to((stack.folder / name).resolve())
        (copy / "cdk.tf.json").write_text(json.dumps(stack.configuration), encoding="utf-8")
        yield Stack(name=stack.name, folder=copy)


def search_by_name(
    clients: Clients, planned: PlannedObject, objects: list[CloudObject], undecided: dict[str, str]
) -> None:
    """Adds to `objects` the one of that name whose id the server gave, or to `undecided` that there are several."""
    facts = facts_of(planned.type_)
    assert facts.listing is not None
    collection, name = planned.text(facts.collection), facts.listing.chosen(planned.values)
    if collection is None or not name:
        return
    try:
        items = [
            item for item in _list(clients, planned, facts.listing, collection) if item.get(facts.listing.field) == name
        ]
    except Failed as failure:
        undecided[planned.address] = f"{planned.address}: {_UNDECIDED}: {failure}"
        return
    ids = [f"{collection}/{str(item[facts.listing.id_]).rpartition('/')[2]}" for item in items]
    if len(ids) == 1:
        objects.append(CloudObject(address=planned.address, id_=ids[0]))
    elif ids:
        undecided[planned.address] = (
            f"{planned.address}: {len(ids)} objects are named '{name}': {', '.join(ids)}. See which one holds what you "
            "need, delete the others, and run this again"
        )


def _list(clients: Clients, planned: PlannedObject, listing: Listing, collection: str) -> Iterator[Mapping[str, Any]]:
    url = f"{clients.api_url(planned.text(listing.host) or listing.host)}/{listing.version}/{collection}"
    page = ""
    while True:
        with clients.asking(f"list {listing.items}", permission=listing.permission, role=listing.role):
            parameters = {"pageToken": page} if page else {}
            body = clients.retry(clients.request)("GET", url, params=parameters).json()
        yield from body.get(listing.items, ())
        page = body.get("nextPageToken", "")
        if not page:
            return


def _first_lines(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines[:3])[:400]
