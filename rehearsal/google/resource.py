"""What all Google resources share: their API is on, their name is free, they have ids, labels and a project."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rehearsal.cloud import Attributes
from rehearsal.google import identity
from rehearsal.terraform import planning
from rehearsal.terraform.resource_type import Client, Refusal
from rehearsal.terraform.schemas import Block
from rehearsal.terraform.values import UNKNOWN, Unknown, is_known, known_part
from vocabulary.resource_types import provider_facts

PROJECT = "project"
SERVICE = "google_project_service"

# https://registry.terraform.io/providers/hashicorp/google/6.50.0/docs/guides/provider_reference#attribution-label
ATTRIBUTION = {"goog-terraform-provisioned": "true"}


# The parts of a full name that may have slashes of their own.
_WHOLE = ("role", "member", "name", "managed_folder", "service_account_id", "parent_connection")


class ApiError(Exception):
    """A Google API's answer that is not success. https://cloud.google.com/apis/design/errors"""

    def __init__(self, code: int, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.text = f"googleapi: Error {code}: {message}" + (f", {reason}" if reason else "")


@dataclass(frozen=True, kw_only=True)
class Change:
    """A resource about to be created (`prior` is None), updated or deleted (`planned` is None), under its full name."""

    client: Client
    name: str
    prior: Attributes | None
    planned: Attributes | None

    @functools.cached_property
    def values(self) -> Attributes:
        """The attributes as they will be, or for a deletion as they are; null where the server is to decide."""
        return dict(known_part((self.prior if self.planned is None else self.planned) or {}))

    def get(self, type_: str, name: str) -> Attributes | None:
        """Another object of the cloud by its full name."""
        return self.client.cloud.get(type_, name)

    @property
    def project(self) -> str:
        return str(self.values.get("project") or self.client.settings.get("project") or "")


Check = Callable[[Change], None]


def nothing(_: Change) -> Attributes:
    return {}


@dataclass(frozen=True, kw_only=True)
class GoogleResource:
    """A Google resource type, declared rather than programmed.

    path         its full name, with {attribute} in it; also its Terraform id and the form that import takes. With
                 {number} in it the server gives the name, and the id in the state is what identifies it
    word         what the provider calls it in errors: "Error creating Subnetwork: ..."
    service      the API that must be on before anything happens to it
    checks       rules for creating and updating; `removal` for deleting
    computed     values that the server decides
    known        values that the provider can plan before it asks the server
    state_only   attributes that the cloud does not have
    labels       the attribute that holds the labels
    merges       creating what exists already is no error (a member of a role, a service that is on)
    exists       Google's words where it is one
    gone         what else goes with it
    stored       what the server keeps of what Terraform gave it, if that differs: a refresh finds it
    replaced_by  attributes whose change forces replacement only sometimes (`CustomizeDiff`)
    """

    type_: str
    path: str
    word: str
    service: str
    checks: Sequence[Check] = ()
    removal: Sequence[Check] = ()
    computed: Callable[[Change], Attributes] = nothing
    known: Callable[[Client, Attributes], Attributes] = lambda _client, _planned: {}
    state_only: tuple[str, ...] = ()
    labels: str = "labels"
    merges: bool = False
    exists: str = "The resource '{name}' already exists"
    gone: Callable[[Change], None] = lambda _: None
    stored: Callable[[Change, Attributes], Attributes] = lambda _change, given: given
    replaced_by: Callable[[Attributes, Attributes], list[planning.Path]] = lambda _prior, _planned: []

    def forces(self, prior: Attributes, planned: Attributes) -> list[planning.Path]:
        return self.replaced_by(prior, planned)

    def identity(self, client: Client, values: Attributes) -> str:
        """The full name. A reference in it ("router": id or self link) counts with its last part."""
        if "{number}" in self.path and isinstance(values.get("id"), str):
            return str(values["id"])
        parts = {}
        for part in re.findall(r"\{(\w+)\}", self.path):
            if part == "number":
                parts[part] = str(10**15 + client.cloud.next(self.type_))
                continue
            given = values.get(part)
            if part in ("project", "region", "zone", "location") and (not given or isinstance(given, Unknown)):
                given = client.settings.get("region" if part == "location" else part)
            parts[part] = str(given) if part in _WHOLE else str(given or "").rsplit("/", 1)[-1]
        return self.path.format_map(parts)

    def plan(self, client: Client, block: Block, prior: Attributes | None, planned: Attributes) -> Attributes:
        out = dict(planned)
        for name in provider_facts(self.type_).from_provider:
            if isinstance(out[name], Unknown):
                out[name] = client.settings.get(name) or UNKNOWN
        if self.labels in out and "effective_labels" in block.attributes:
            out.update(_labels(client, prior, out.get(self.labels)))
        for name, value in self.known(client, out).items():
            if isinstance(out.get(name), Unknown):
                out[name] = value
        return out

    def read(self, client: Client, block: Block, state: Attributes) -> Attributes | None:
        try:
            may(client, self.type_, "read", state)
        except ApiError as error:
            raise Refusal(f"Error when reading or editing {self.word}: {error.text}") from error
        found = client.cloud.get(self.type_, self.identity(client, state))
        if found is None:
            return None
        return found | {name: state.get(name) for name in self._only_in_state(block)}

    def create(self, client: Client, block: Block, planned: Attributes) -> Attributes:
        with client.cloud.transaction():
            change = Change(client=client, name=self.identity(client, planned), prior=None, planned=planned)
            return self._write(change, block, "creating")

    def update(self, client: Client, block: Block, prior: Attributes, planned: Attributes) -> Attributes:
        with client.cloud.transaction():
            change = Change(client=client, name=self.identity(client, prior), prior=prior, planned=planned)
            if client.cloud.get(self.type_, change.name) is None:
                raise Refusal(
                    f"Error updating {self.word}: googleapi: Error 404:"
                    f" The resource '{change.name}' was not found, notFound"
                )
            return self._write(change, block, "updating")

    def delete(self, client: Client, block: Block, prior: Attributes) -> None:
        with client.cloud.transaction():
            change = Change(client=client, name=self.identity(client, prior), prior=prior, planned=None)
            if client.cloud.get(self.type_, change.name) is None:
                return
            try:
                service_is_on(change, self.service)
                may(client, self.type_, "delete", prior)
                for check in self.removal:
                    check(change)
            except ApiError as error:
                raise Refusal(f"Error deleting {self.word}: {error.text}") from error
            client.cloud.delete(self.type_, change.name)
            self.gone(change)

    def find(self, client: Client, id_: str) -> Attributes:
        if "{number}" in self.path:
            return {"id": id_}
        parts = list(dict.fromkeys(re.findall(r"\{(\w+)\}", self.path)))
        # A member of a role: the resource, the role, the member, and the title of a condition with spaces of its own.
        is_member = self.merges and " " in id_
        given = id_.split(" ")[:3] if is_member else id_.split("/")
        whole = None if is_member else re.fullmatch(_pattern(self.path), id_)
        if whole is not None:
            found = whole.groupdict()
        elif len(given) <= len(parts):
            found = dict(zip(parts[-len(given) :], given, strict=True))
        else:
            raise Refusal(f"Import id {id_!r} doesn't match any of the accepted formats: [{self.path}]")
        # What only the state has is at its default after an import, as in the provider's own importers.
        defaults = {name: provider_facts(self.type_).defaults.get(name) for name in self.state_only}
        values = {"id": id_, "project": client.settings.get("project"), **defaults, **found}
        if is_member and client.cloud.get(self.type_, self.identity(client, values)) is None:
            words = f'with role "{values["role"]}", member "{values["member"]}", and condition title ""'
            raise Refusal(f"Cannot find binding for {given[0]!r} {words}")
        return values

    def _write(self, change: Change, block: Block, doing: str) -> Attributes:
        cloud = change.client.cloud
        try:
            service_is_on(change, self.service)
            may(change.client, self.type_, "update" if change.prior else "create", change.values)
            if change.prior is None and not self.merges and cloud.get(self.type_, change.name) is not None:
                raise ApiError(
                    409, self.exists.format(name=change.name, last=change.name.rsplit("/", 1)[-1]), "alreadyExists"
                )
            for check in self.checks:
                check(change)
        except ApiError as error:
            raise Refusal(f"Error {doing} {self.word}: {error.text}") from error
        assert change.planned is not None
        decided = server_values(change) | self.computed(change)
        settled = planning.settle(block, planning.overlay(change.planned, decided))
        kept = {name: value for name, value in settled.items() if name not in self._only_in_state(block)}
        cloud.put(self.type_, change.name, self.stored(change, kept))
        return settled

    def _only_in_state(self, block: Block) -> list[str]:
        return [*self.state_only, *(["timeouts"] if "timeouts" in block.blocks else [])]


def _pattern(path: str) -> str:
    """A regular expression for the names that `path` makes."""
    seen: set[str] = set()

    def group(match: re.Match[str]) -> str:
        name = match.group(1)
        text = f"(?P={name})" if name in seen else f"(?P<{name}>.+)"
        seen.add(name)
        return text

    return re.sub(r"\\\{(\w+)\\\}", group, re.escape(path))


def server_values(change: Change) -> Attributes:
    """What the server adds to most resources, under the names that most of them use."""
    settings, values = change.client.settings, change.values
    now = "2026-01-01T00:00:00.000-08:00"  # one moment for everything: two rehearsals of the same files are alike
    return {
        "id": change.name,
        "self_link": f"https://www.googleapis.com/compute/v1/{change.name}",
        "region": settings.get("region"),
        "location": settings.get("region"),
        "zone": settings.get("zone"),
        "project": settings.get("project"),
        "creation_timestamp": now,
        "create_time": now,
        "update_time": now,
        "etag": hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12],
        "fingerprint": hashlib.sha256(change.name.encode()).hexdigest()[:12],
    }


def service_is_on(change: Change, service: str) -> None:
    """An API answers only in a project that exists and has it enabled.

    https://cloud.google.com/service-usage/docs/enabled-service#api-not-enabled
    """
    project = change.project
    found = change.get(PROJECT, f"projects/{project}")
    if found is None:
        raise ApiError(403, f"Permission denied on resource project {project}.", "forbidden")
    if change.get(SERVICE, f"projects/{project}/services/{service}") is None:
        raise ApiError(
            403,
            f"{service} has not been used in project {found['number']} before or it is disabled. Enable it by visiting"
            f" https://console.developers.google.com/apis/api/{service}/overview?project={project} then retry.",
            "accessNotConfigured",
        )


def may(client: Client, type_: str, operation: str, values: Attributes) -> None:
    """Raises ApiError 403 where IAM does not let the client's account do that.

    https://cloud.google.com/iam/docs/troubleshoot-access
    """
    project = str(known_part(values).get("project") or client.settings.get("project") or "")
    why = identity.refused(client.cloud, client.account, type_, operation, known_part(values), project=project)
    if why:
        raise ApiError(403, why, "forbidden")


def _labels(client: Client, prior: Attributes | None, labels: Any) -> Attributes:
    """Labels of the resource, of Terraform, and in effect.

    https://registry.terraform.io/providers/hashicorp/google/6.50.0/docs/guides/provider_reference#default_labels
    """
    if not is_known(labels):
        return {"terraform_labels": UNKNOWN, "effective_labels": UNKNOWN}
    before = (prior or {}).get("effective_labels") or {}
    ours = dict(client.settings.get("default_labels") or {})
    wanted = client.settings.get("add_terraform_attribution_label") is not False
    always = client.settings.get("terraform_attribution_label_addition_strategy") == "PROACTIVE"
    if wanted and (prior is None or always or ATTRIBUTION.keys() <= before.keys()):
        ours |= ATTRIBUTION
    ours |= labels or {}
    dropped = ((prior or {}).get("terraform_labels") or {}).keys() - ours.keys()
    kept = {key: value for key, value in before.items() if key not in dropped}
    return {"terraform_labels": ours, "effective_labels": kept | ours}


def reference(value: Any, path: str, client: Client, **parts: str) -> str:
    """The full name behind a reference: a self link, a full name, or a bare name to be put into `path`."""
    text = re.sub(r"^https://[^/]+/(?:compute/)?v\d\w*/|^//[^/]+/", "", str(value or ""))
    if text.startswith("projects/"):
        return text
    defaults = {key: str(client.settings.get(key) or "") for key in ("project", "region", "zone")}
    return path.format_map(defaults | parts | {"name": text.rsplit("/", 1)[-1]})


def one(values: Attributes | None, name: str) -> Attributes:
    """The block `name`, of which there is at most one, or an empty one."""
    found = (values or {}).get(name)
    if isinstance(found, list):
        return found[0] if found and isinstance(found[0], dict) else {}
    return found if isinstance(found, dict) else {}
