"""A Google resource type as one row: its name, its API, its rules, what the server decides. The row does the rest."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rehearsal.cloud import Attributes, Object
from rehearsal.google import permissions
from rehearsal.google.errors import ApiError, already_exists, bad_request, forbidden, in_use, not_found, require
from rehearsal.google.labels import labels_of
from rehearsal.google.names import attributes_of, full_name, parse_import_id, place
from rehearsal.terraform import planning
from rehearsal.terraform.resource_type import Client, Refusal
from rehearsal.terraform.schemas import Block
from rehearsal.terraform.values import UNKNOWN, Unknown, known_part, value_at
from vocabulary.resource_types import Facts, facts_of, fill, provider_facts

PROJECT = "project"
SERVICE = "google_project_service"


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
        return place(self.client, self.values)["project"]


Check = Callable[[Change], None]


def matches(attribute: str, pattern: str, message: str, error: Callable[[str], ApiError] = bad_request) -> Check:
    """A check that an attribute matches a regular expression; "{}" in the message is its value."""

    def check(change: Change) -> None:
        value = str(change.values[attribute])
        require(re.fullmatch(pattern, value), message.replace("{}", value), error)

    return check


@dataclass(frozen=True, kw_only=True)
class Reference:
    """An attribute that names another resource. As a check: if it is written, that resource exists.

    attribute   its path through blocks: "node_config.service_account"
    type_       the type of the resource that it names
    template    the full name for a short one, where it is not the type's
    default     the name where none is written
    missing     the answer where no such resource exists, of its full name
    """

    attribute: str
    type_: str
    template: str = ""
    default: str = ""
    missing: Callable[[str], ApiError] = lambda name: not_found(f"The resource '{name}' was not found")

    def target(self, client: Client, values: Attributes) -> str:
        """The full name of what the attribute names, "" where nothing is written."""
        written = value_at(values, self.attribute) or self.default
        template = self.template or facts_of(self.type_).name
        return full_name(written, template, place(client, values)) if isinstance(written, str) and written else ""

    def __call__(self, change: Change) -> None:
        name = self.target(change.client, change.values)
        require(not name or change.get(self.type_, name) is not None, name, self.missing)

    def users(self, change: Change, *types: str) -> Iterator[Object]:
        """Resources of these types that name the changed resource by this attribute."""
        for type_ in types:
            for item in change.client.cloud.find(type_):
                if self.target(change.client, item.attributes) == change.name:
                    yield item


def unused(word: str, reference: Reference, *types: str) -> Check:
    """A check that no resource of these types names the one that is to be deleted."""

    def check(change: Change) -> None:
        for user in reference.users(change, *types):
            raise in_use(f"The {word} '{change.name}' is already being used by '{user.name}'")

    return check


def nothing(_: Change) -> Attributes:
    return {}


@dataclass(frozen=True, kw_only=True)
class GoogleResource:
    """A Google resource type: its API, name and words are facts of vocabulary/resource_types, its rules are here.

    The full name is the Terraform id and the form that import takes too. With {number} in it the server gives it, and
    the id in the state is what identifies the resource.

    checks       rules for creating and updating; `removal` for deleting
    computed     values that the server decides
    known        values that the provider can plan before it asks the server
    state_only   attributes that the cloud does not have
    labels       the attribute that holds the labels
    merges       creating what exists already is no error (a member of a role, a service that is on)
    deleted      what the server deletes or keeps with it
    stored       what the server keeps of what Terraform sent, where that differs: a refresh returns it
    replaced_by  attributes whose change forces replacement only sometimes (`CustomizeDiff`)
    """

    type_: str
    checks: Sequence[Check] = ()
    removal: Sequence[Check] = ()
    computed: Callable[[Change], Attributes] = nothing
    known: Callable[[Client, Attributes], Attributes] = lambda _client, _planned: {}
    state_only: tuple[str, ...] = ()
    labels: str = "labels"
    merges: bool = False
    deleted: Callable[[Change], None] = lambda _: None
    stored: Callable[[Change, Attributes], Attributes] = lambda _change, sent: sent
    replaced_by: Callable[[Attributes, Attributes], list[planning.Path]] = lambda _prior, _planned: []

    @property
    def facts(self) -> Facts:
        return facts_of(self.type_)

    def forces(self, prior: Attributes, planned: Attributes) -> list[planning.Path]:
        return self.replaced_by(prior, planned)

    def identity(self, client: Client, values: Attributes) -> str:
        """The full name; of a resource that the server names, the id in the state, or a new number."""
        template = self.facts.name
        if "{number}" in template and isinstance(values.get("id"), str):
            return str(values["id"])
        number = {"number": str(10**15 + client.cloud.next(self.type_))} if "{number}" in template else {}
        return fill(template, values | place(client, values) | number) or ""

    def plan(self, client: Client, block: Block, prior: Attributes | None, planned: Attributes) -> Attributes:
        out = dict(planned)
        for name in provider_facts(self.type_).from_provider:
            if isinstance(out[name], Unknown):
                out[name] = client.settings.get(name) or UNKNOWN
        if self.labels in out and "effective_labels" in block.attributes:
            out.update(labels_of(client, prior, out.get(self.labels)))
        known = self.known(client, out)
        return out | {name: value for name, value in known.items() if isinstance(out.get(name), Unknown)}

    def read(self, client: Client, block: Block, state: Attributes) -> Attributes | None:
        try:
            may(client, self.type_, "read", state)
        except ApiError as error:
            raise Refusal(f"Error when reading or editing {self.facts.noun}: {error.text}") from error
        stored = client.cloud.get(self.type_, self.identity(client, state))
        return None if stored is None else stored | {name: state.get(name) for name in self._only_in_state(block)}

    def create(self, client: Client, block: Block, planned: Attributes) -> Attributes:
        with client.cloud.transaction():
            change = Change(client=client, name=self.identity(client, planned), prior=None, planned=planned)
            return self._write(change, block, "creating")

    def update(self, client: Client, block: Block, prior: Attributes, planned: Attributes) -> Attributes:
        with client.cloud.transaction():
            change = Change(client=client, name=self.identity(client, prior), prior=prior, planned=planned)
            if client.cloud.get(self.type_, change.name) is None:
                error = not_found(f"The resource '{change.name}' was not found")
                raise Refusal(f"Error updating {self.facts.noun}: {error.text}")
            return self._write(change, block, "updating")

    def delete(self, client: Client, block: Block, prior: Attributes) -> None:
        with client.cloud.transaction():
            change = Change(client=client, name=self.identity(client, prior), prior=prior, planned=None)
            if client.cloud.get(self.type_, change.name) is None:
                return
            try:
                service_is_on(change, self.facts.api)
                may(client, self.type_, "delete", prior)
                for check in self.removal:
                    check(change)
            except ApiError as error:
                raise Refusal(f"Error deleting {self.facts.noun}: {error.text}") from error
            client.cloud.delete(self.type_, change.name)
            self.deleted(change)

    def find(self, client: Client, id_: str) -> Attributes:
        if "{number}" in self.facts.name:
            return {"id": id_}
        if self.merges and " " in id_:
            return self._find_member(client, id_)
        parts = parse_import_id(self.facts.name, id_)
        if parts is None:
            raise Refusal(f"Import id {id_!r} doesn't match any of the accepted formats: [{self.facts.name}]")
        # What only the state has is at its default after an import, as in the provider's own importers.
        defaults = {name: provider_facts(self.type_).defaults.get(name) for name in self.state_only}
        return {"id": id_, "project": client.settings.get("project"), **defaults, **parts}

    def _find_member(self, client: Client, id_: str) -> Attributes:
        """A member of a role: the resource, the role, the member, and the title of a condition, with spaces between."""
        given = id_.split(" ")[:3]
        names = attributes_of(self.facts.name)[-len(given) :]
        values = {"id": id_, "project": client.settings.get("project"), **dict(zip(names, given, strict=True))}
        if client.cloud.get(self.type_, self.identity(client, values)) is None:
            words = f'with role "{values["role"]}", member "{values["member"]}", and condition title ""'
            raise Refusal(f"Cannot find binding for {given[0]!r} {words}")
        return values

    def _write(self, change: Change, block: Block, doing: str) -> Attributes:
        cloud = change.client.cloud
        try:
            service_is_on(change, self.facts.api)
            may(change.client, self.type_, "update" if change.prior else "create", change.values)
            if change.prior is None and not self.merges and cloud.get(self.type_, change.name) is not None:
                raise already_exists(self.facts.exists.format(name=change.name, last=change.name.rsplit("/", 1)[-1]))
            for check in self.checks:
                check(change)
        except ApiError as error:
            raise Refusal(f"Error {doing} {self.facts.noun}: {error.text}") from error
        assert change.planned is not None
        decided = server_values(change) | self.computed(change)
        settled = planning.settle(block, planning.overlay(change.planned, decided))
        kept = {name: value for name, value in settled.items() if name not in self._only_in_state(block)}
        cloud.put(self.type_, change.name, self.stored(change, kept))
        return settled

    def _only_in_state(self, block: Block) -> list[str]:
        return [*self.state_only, *(["timeouts"] if "timeouts" in block.blocks else [])]


@dataclass(frozen=True, kw_only=True)
class GoogleDataSource:
    """A data source over one stored object.

    template  its full name, by the attributes of the configuration
    noun      what the provider reads in errors: "Error reading Project: ..."; "{name}" is the full name
    missing   the provider's words where it does not exist
    known     attributes of the template that the configuration has in another form
    answer    the attributes of the object that the data source has; empty for all
    """

    type_: str
    stored_as: str
    template: str
    noun: str
    missing: str = "{name} not found"
    known: Callable[[Client, Attributes], Attributes] = lambda _client, _config: {}
    answer: tuple[str, ...] = ()

    def read(self, client: Client, config: Attributes) -> dict[str, Any]:
        values = config | place(client, config) | self.known(client, config)
        name = fill(self.template, values) or ""
        try:
            may(client, f"data.{self.type_}", "read", values)
        except ApiError as error:
            raise Refusal(f"{self.noun.format(name=name)}: {error.text}") from error
        stored = client.cloud.get(self.stored_as, name)
        if stored is None:
            raise Refusal(self.missing.format(name=name))
        return config | {key: stored[key] for key in self.answer or stored} | {"id": name}


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
    stored = change.get(PROJECT, f"projects/{project}")
    if stored is None:
        raise forbidden(f"Permission denied on resource project {project}.")
    if change.get(SERVICE, f"projects/{project}/services/{service}") is None:
        raise ApiError(
            403,
            f"{service} has not been used in project {stored['number']} before or it is disabled. Enable it by visiting"
            f" https://console.developers.google.com/apis/api/{service}/overview?project={project} then retry.",
            "accessNotConfigured",
        )


def may(client: Client, type_: str, operation: str, values: Attributes) -> None:
    """Raises ApiError 403 where IAM does not let the client's account do that.

    https://cloud.google.com/iam/docs/troubleshoot-access
    """
    project = place(client, values)["project"]
    why = permissions.refused(client.cloud, client.account, type_, operation, known_part(values), project=project)
    require(not why, why, forbidden)
