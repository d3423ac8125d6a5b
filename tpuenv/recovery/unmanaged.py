"""What exists in the cloud under the names of a stack's plan and is in no state; and how it gets into the state.

Terraform itself looks, through its providers: a plan of a copy of the stack with `import` blocks changes nothing and
tells for each object whether it is there. https://developer.hashicorp.com/terraform/language/import
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.api_core import exceptions

from tpuenv.failure import Failed
from tpuenv.google.clients import Clients
from tpuenv.recovery.import_ids import Planned, import_id, planned
from tpuenv.terraform.messages import Messages
from tpuenv.terraform.process import Terraform
from tpuenv.terraform.stacks import Stack
from vocabulary.resource_types import Listing, UnknownResourceType, facts_of, is_described

# A provider of Google's takes some 300 MB.
_AT_ONCE = 4

_MISSING = re.compile(r'attempting to import an existing object to "(.+?)", the provider detected that no object')

# What the providers say when their own import looks and finds nothing: an HTTP status, Kubernetes' reasons, Helm's
# words, and the Google provider's for a member of a role.
_NOT_FOUND = re.compile(
    r"\b404\b|not ?found|does(n't| not) exist|cannot find binding|no matches for|did not recognize", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True)
class Object:
    """An object in the cloud: where it belongs in the stack, and its id for `terraform import`."""

    address: str
    id_: str

    def __str__(self) -> str:
        return f"{self.address} ({self.id_})"


@dataclass(frozen=True, kw_only=True)
class Looked:
    """What was found, and what is unclear: by address, with what to do about it."""

    found: Sequence[Object]
    unclear: Mapping[str, str]


def look(terraform: Terraform, plan: Mapping[str, Any], clients: Clients, *, known: Sequence[str] = ()) -> Looked:
    """Looks for what the plan of the stack (`terraform show -json`) would create, but for the addresses `known`.

    Changes nothing, and takes no lock. What has its id from another object that is found first is not looked for yet.
    """
    ids: dict[str, str] = {}
    listed: list[Object] = []
    unclear: dict[str, str] = {}
    for wanted in planned(plan, terraform.stack.configuration):
        if wanted.address in known:
            continue
        if not is_described(wanted.type_):
            unclear[wanted.address] = (
                f"{wanted.address}: it cannot be told whether it exists: {UnknownResourceType(wanted.type_)}"
            )
        elif facts_of(wanted.type_).listing:
            by_name(clients, wanted, listed, unclear)
        elif id_ := import_id(wanted):
            ids[wanted.address] = id_
    found, puzzling = _existing(terraform.stack, ids)
    return Looked(found=[*listed, *found], unclear={**unclear, **puzzling})


def unprotected_plan(stack: Stack) -> Mapping[str, Any]:
    """What the plan of the stack would be (`terraform show -json`) if nothing in it were protected; {} without one.

    Where a network is in no state, what is in it would be made anew in another one, and its protection refuses that
    before there is a plan that names the network.
    """
    configuration = stack.configuration
    for by_id in configuration.get("resource", {}).values():
        for resource in by_id.values():
            resource.get("lifecycle", {}).pop("prevent_destroy", None)
    with _copy(stack) as copy:
        return _plan(copy, "unprotected", configuration)[1]


def bring(terraform: Terraform, found: Object) -> str:
    """Imports it, which changes the state alone; what Terraform says when it cannot, else ""."""
    done = terraform.run("import", "-input=false", "-no-color", "-lock-timeout=60s", found.address, found.id_)
    return done.stdout.strip() if done.returncode else ""


def _existing(stack: Stack, ids: Mapping[str, str]) -> tuple[list[Object], dict[str, str]]:
    """All at once, and one by one those about which that said nothing."""
    left = dict(ids)
    found: list[Object] = []
    with _copy(stack) as copy:
        while left:
            said, importing = _try(copy, "all", left)
            missing = {address for each in said.diagnostics("error") for address in _MISSING.findall(each["detail"])}
            found += [Object(address=each, id_=left[each]) for each in left if each in importing]
            before, left = left, {each: id_ for each, id_ in left.items() if each not in {*importing, *missing}}
            if len(left) == len(before):
                break
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            each_one = [Object(address=address, id_=id_) for address, id_ in left.items()]
            answers = list(pool.map(lambda one: _alone(copy, one), each_one))
    pairs = list(zip(each_one, answers, strict=True))
    there = [one for one, answer in pairs if answer is None]
    return found + there, {one.address: answer for one, answer in pairs if answer}


def _alone(copy: Stack, one: Object) -> str | None:
    """None: it exists. "": it does not. Else why neither can be told."""
    said, importing = _try(copy, one.address, {one.address: one.id_}, f"-target={one.address}")
    errors = said.diagnostics("error")
    # With an address it is the plan that failed, for which the object had been read before.
    if one.address in importing or any(each.get("address") == one.address for each in errors):
        return None
    told = [f"{each['summary']} {each.get('detail')}" for each in errors]
    if told and all(_MISSING.search(each) or _NOT_FOUND.search(each) for each in told):
        return ""
    return f"{one}: it cannot be told whether it exists: {_first_line(said.errors)}"


def _try(copy: Stack, name: str, ids: Mapping[str, str], *more: str) -> tuple[Messages, set[str]]:
    """What Terraform said about a plan with these imports, and the addresses that were there to be imported."""
    blocks = [{"to": address, "id": id_} for address, id_ in ids.items()]
    said, plan = _plan(copy, name, {**copy.configuration, "import": blocks}, *more)
    changes = plan.get("resource_changes", ())
    return said, {each["address"] for each in changes if each["change"].get("importing")}


def _plan(copy: Stack, name: str, configuration: Mapping[str, Any], *more: str) -> tuple[Messages, Mapping[str, Any]]:
    """What Terraform said, and as far as it came the plan, in a folder of its own: it reads all JSON that is in one."""
    folder = copy.folder / re.sub(r"[^a-zA-Z0-9_-]", "-", name) / copy.name
    folder.mkdir(parents=True, exist_ok=True)
    for path in copy.folder.iterdir():
        if path.is_symlink() and not (folder / path.name).is_symlink():
            (folder / path.name).symlink_to(path.resolve())
    (folder / "cdk.tf.json").write_text(json.dumps(configuration), encoding="utf-8")
    terraform = Terraform(stack=Stack(name=copy.name, folder=folder))
    said = Messages.of(
        terraform.run_read_only("plan", "-input=false", "-json", "-lock=false", "-refresh=false", "-out=looked", *more)
    )
    try:
        # Also of a plan that failed Terraform keeps what it came to.
        return said, json.loads(terraform.run_read_only("show", "-json", "looked"))
    except ValueError:
        return said, {}


@contextmanager
def _copy(stack: Stack) -> Iterator[Stack]:
    """A copy of the stack's folder that is ready to plan: what is beside its JSON is only linked to."""
    with tempfile.TemporaryDirectory(prefix="tpuenv-") as folder:
        copy = Path(folder)
        for name in (".terraform", ".terraform.lock.hcl", "assets"):
            if (stack.folder / name).exists():
                (copy / name).symlink_to((stack.folder / name).resolve())
        (copy / "cdk.tf.json").write_text(json.dumps(stack.configuration), encoding="utf-8")
        yield Stack(name=stack.name, folder=copy)


def by_name(clients: Clients, wanted: Planned, found: list[Object], unclear: dict[str, str]) -> None:
    """Adds to `found` the one object of that name, or to `unclear` that there are several."""
    facts = facts_of(wanted.type_)
    assert facts.listing is not None
    path, name = wanted.text(facts.collection), wanted.values.get(facts.listing.attribute)
    if path is None or not name:
        return
    try:
        named = [item for item in _all(clients, wanted, facts.listing, path) if item.get(facts.listing.field) == name]
    except Failed as failure:
        unclear[wanted.address] = f"{wanted.address}: it cannot be told whether it exists: {failure}"
        return
    ids = [str(item[facts.listing.id_]).rpartition("/")[2] for item in named]
    if len(ids) == 1:
        found.append(Object(address=wanted.address, id_=f"{path}/{ids[0]}"))
    elif ids:
        unclear[wanted.address] = (
            f"{wanted.address}: {len(ids)} objects are named '{name}': {', '.join(f'{path}/{id_}' for id_ in ids)}. "
            "See which one holds what you need, delete the others, and run this again"
        )


def _all(clients: Clients, wanted: Planned, how: Listing, path: str) -> Iterator[Mapping[str, Any]]:
    url = f"{clients.api_url(wanted.text(how.host) or how.host)}/v1/{path}"
    page = ""
    while True:
        with clients.asking(f"list {how.items}", permission=how.permission, role=how.role):
            answer = clients.retry(clients.session.get)(
                url, params={"pageToken": page} if page else {}, timeout=clients.patience.answer
            )
            if not answer.ok:
                raise exceptions.from_http_response(answer)  # type: ignore[no-untyped-call]
        body = answer.json()
        yield from body.get(how.items, ())
        page = body.get("nextPageToken", "")
        if not page:
            return


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines[:3])[:400]
