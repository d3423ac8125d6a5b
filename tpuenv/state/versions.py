"""The states in the bucket: their versions, whether they are whole, and how an older one replaces the present one."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from google.cloud.storage import Blob

from environment.names import OBSERVABILITY, Names
from tpuenv.failure import Failed
from tpuenv.google.clients import Clients
from tpuenv.google.storage import ABSENT
from tpuenv.state.bucket import state_objects
from tpuenv.state.locks import hold_lock
from vocabulary.printable import counted
from vocabulary.resource_types import is_imported


@dataclass(frozen=True, kw_only=True)
class State:
    """What a state says: Terraform's lineage and serial, and the addresses of what it owns, in their order."""

    lineage: str
    serial: int
    addresses: tuple[str, ...]

    @property
    def owned(self) -> tuple[str, ...]:
        """The addresses of what exists in the cloud, without what Terraform itself keeps there, as the guard is."""
        return tuple(address for address in self.addresses if is_imported(_type(address)))


@dataclass(frozen=True, kw_only=True)
class Version:
    """One version of a stack's state. `state` is None where it cannot be read, and `problem` says why."""

    generation: int
    when: datetime | None
    live: bool
    content: bytes
    state: State | None
    problem: str = ""

    def __str__(self) -> str:
        when = f"{self.when:%Y-%m-%d %H:%M:%S}" if self.when else "an unknown time"
        if self.state is None:
            return f"{self.generation} of {when}: {self.problem}"
        return f"{self.generation} of {when}, serial {self.state.serial}, {len(self.state.addresses)} resources"


def parse(content: bytes) -> State:
    """Raises ValueError, saying why, when this is no whole state of Terraform's present format."""
    if not content.strip():
        raise ValueError("it is empty")
    try:
        body = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON, or not all of it ({error})") from error
    if not isinstance(body, dict) or body.get("version") != 4:
        raise ValueError("it is not a state of Terraform's format 4")
    try:
        return State(
            lineage=str(body["lineage"]),
            serial=int(body["serial"]),
            addresses=tuple(
                _address(resource, instance)
                for resource in body["resources"]
                if resource["mode"] == "managed"
                for instance in resource["instances"]
            ),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"a part is missing or wrong: {error}") from error


def _address(resource: dict[str, Any], instance: dict[str, Any]) -> str:
    start = f"{resource['module']}." if resource.get("module") else ""
    key = f"[{json.dumps(instance['index_key'])}]" if "index_key" in instance else ""
    return f"{start}{resource['type']}.{resource['name']}{key}"


def _type(address: str) -> str:
    return re.sub(r"^(module\.[^.]+\.)*", "", address).partition(".")[0]


def state_name(names: Names, stack: str) -> str:
    """Where the `gcs` backend keeps a stack's state. https://developer.hashicorp.com/terraform/language/backend/gcs"""
    return f"{names.state_prefix}/{stack}/default.tfstate"


def stacks(clients: Clients, names: Names) -> list[str]:
    """The stacks whose state is or was in the bucket, by name. Raises Failed."""
    pattern = re.compile(re.escape(names.state_prefix) + r"/([^/]+)/default\.tfstate")
    blobs = state_objects(clients, names).list_objects(f"{names.state_prefix}/", what="list the states", versions=True)
    return sorted({match[1] for blob in blobs if (match := pattern.fullmatch(blob.name))})


def exists(clients: Clients, names: Names, stack: str) -> bool:
    """Whether the stack has a state at present. Raises Failed."""
    return state_objects(clients, names).read(state_name(names, stack), what="read a state") is not None


def of_removed_stacks(clients: Clients, names: Names, synthesized: Collection[str]) -> Iterator[str]:
    """What to do about each state that owns something and is of none of the `synthesized` stacks: no deploy or
    destroy with the present settings reaches what it owns. Raises Failed.
    """
    for stack in stacks(clients, names):
        live = None if stack in synthesized else live_version(read_versions(clients, names, stack))
        if live and live.state and live.state.owned:
            # The stack is not the last one where there are TPU VMs, and the pipeline never is.
            destroy = f"DELETION_PROTECTION=false tpuenv destroy {stack} -- --ignore-missing-stack-dependencies"
            yield (
                f"{stack}: the settings have no such stack any more, and {counted(len(live.state.owned), 'resource')} "
                "of it in the cloud may still cost money; "
                + (
                    f"this destroys it: OBSERVABILITY=true {destroy}"
                    if stack == OBSERVABILITY
                    else f"undo that change of the settings, run {destroy}, then change them again"
                )
            )


def read_versions(clients: Clients, names: Names, stack: str) -> list[Version]:
    """All versions of a stack's state that the bucket keeps, newest first. Raises Failed."""
    bucket, name = state_objects(clients, names), state_name(names, stack)

    def blobs(*, versions: bool) -> dict[int, Blob]:
        listed = bucket.list_objects(name, what=f"list the states of {stack}", versions=versions)
        return {int(blob.generation): blob for blob in listed if blob.name == name}

    live = blobs(versions=False)
    kept = []
    for generation, blob in sorted(blobs(versions=True).items(), reverse=True):
        stored = bucket.read(name, what=f"read the state of {stack}", generation=generation)
        if stored is None:
            continue  # The bucket has just deleted it: it was too old.
        state, problem = None, ""
        try:
            state = parse(stored.content)
        except ValueError as error:
            problem = str(error)
        kept.append(
            Version(
                generation=generation,
                when=blob.time_created,
                live=generation in live,
                content=stored.content,
                state=state,
                problem=problem,
            )
        )
    return kept


def live_version(versions: Sequence[Version]) -> Version | None:
    """The present one, which Terraform reads."""
    return next((version for version in versions if version.live), None)


def last_whole(versions: Sequence[Version]) -> Version | None:
    """The newest whole version, of these newest first; but an older one where the state was lost after it.

    Where there is no state, Terraform writes an empty one, of another lineage than the one that is lost; a deploy that
    fails then adds the guard. After a destroy the state is empty as well, but of the lineage that owned something.
    """
    whole = [(version, version.state) for version in versions if version.state is not None]
    if not whole:
        return None
    newest, present = whole[0]
    if any(state.owned for _, state in whole if state.lineage == present.lineage):
        return newest
    return next((version for version, state in whole if state.owned), newest)


def of_other_lineage(versions: Sequence[Version], live: Version) -> Version | None:
    """The newest version of another lineage, if it owns something that the present state does not own."""
    if live.state is None:
        return None
    for version in versions:
        if version.state is not None and version.state.lineage != live.state.lineage:
            return version if set(version.state.owned) - set(live.state.owned) else None
    return None


def replace(clients: Clients, names: Names, stack: str, content: bytes, *, another_lineage: bool = False) -> int:
    """Replaces the present state by this one, under its lock; the new serial. Raises Failed.

    The serial is raised above all that were, or Terraform would not take it for newer. In a versioned bucket the
    present state stays as an old version.
    """
    try:
        new = parse(content)
    except ValueError as error:
        raise Failed(f"{stack}: this is no whole state: {error}") from error
    with hold_lock(clients, names, stack, operation="tpuenv state restore"):
        versions = read_versions(clients, names, stack)
        live = live_version(versions)
        if live is not None and live.state is not None and live.state.lineage != new.lineage and not another_lineage:
            raise Failed(
                f"{stack}: that state is of another lineage than the present one: Terraform began a new state since, "
                "which owns other objects. If you mean it, add --another-lineage"
            )
        serial = 1 + max([new.serial, *(version.state.serial for version in versions if version.state is not None)])
        written = state_objects(clients, names).write(
            state_name(names, stack),
            json.dumps({**json.loads(content), "serial": serial}, indent=2),
            what=f"write the state of {stack}",
            over=live.generation if live else ABSENT,
        )
        if not written:
            raise _changed(stack)
    return serial


def remove(clients: Clients, names: Names, stack: str, version: Version) -> None:
    """Deletes the present state, which stays as an old version. Raises Failed."""
    with hold_lock(clients, names, stack, operation="tpuenv recover"):
        if not state_objects(clients, names).delete(
            state_name(names, stack), what=f"delete the state of {stack}", generation=version.generation
        ):
            raise _changed(stack)


def _changed(stack: str) -> Failed:
    return Failed(f"{stack}: its state changed in between; nothing was written. Try again")
