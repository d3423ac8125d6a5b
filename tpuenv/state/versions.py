"""The states in the bucket: their versions, whether they are whole, an older one put in place of the present one."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from google.api_core.exceptions import NotFound, PreconditionFailed
from google.cloud.storage import Blob

from environment.names import Names
from tpuenv.failure import Failed
from tpuenv.google.clients import Clients
from tpuenv.state import locks

# Nothing of these is ours to find: the first are objects of Terraform alone, the second the project's own, which
# `tpuenv bootstrap` switches on and a deploy takes into the state as they are.
NOT_OURS = ("terraform_data", "google_project_service")

_ROLE = "roles/storage.objectUser"


@dataclass(frozen=True, kw_only=True)
class State:
    """What a state says: Terraform's lineage and serial, and the addresses of what it owns, in their order."""

    lineage: str
    serial: int
    addresses: tuple[str, ...]

    @property
    def owned(self) -> tuple[str, ...]:
        """The addresses of what exists in the cloud, without what Terraform itself keeps there, as the guard is."""
        return tuple(each for each in self.addresses if _type(each) not in NOT_OURS)


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
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON, or not all of it ({error})") from error
    if not isinstance(found, dict) or found.get("version") != 4:
        raise ValueError("it is not a state of Terraform's format 4")
    try:
        return State(
            lineage=str(found["lineage"]),
            serial=int(found["serial"]),
            addresses=tuple(_address(each, instance) for each in found["resources"]
                            if each["mode"] == "managed" for instance in each["instances"]),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"a part is missing or wrong: {error}") from error


def _address(resource: dict[str, Any], instance: dict[str, Any]) -> str:
    start = f"{resource['module']}." if resource.get("module") else ""
    key = f"[{json.dumps(instance['index_key'])}]" if "index_key" in instance else ""
    return f"{start}{resource['type']}.{resource['name']}{key}"


def _type(address: str) -> str:
    return re.sub(r"^(module\.[^.]+\.)*", "", address).partition(".")[0]


def stacks(clients: Clients, names: Names) -> list[str]:
    """The stacks of which a state is or was in the bucket. Raises Failed."""
    pattern = re.compile(re.escape(names.state_prefix) + r"/([^/]+)/default\.tfstate")
    with _asking(clients, names, "list the states", "list"):
        found = clients.storage.list_blobs(
            clients.storage.bucket(names.state_bucket),
            prefix=f"{names.state_prefix}/",
            versions=True,
            retry=clients.retry,
            timeout=clients.patience.answer,
        )
        matched = (pattern.fullmatch(blob.name) for blob in found)
        return sorted({match[1] for match in matched if match})


def exists(clients: Clients, names: Names, stack: str) -> bool:
    """Whether there is a present state of the stack. Raises Failed."""
    with _asking(clients, names, f"read the state of {stack}", "get"):
        found: bool = _blob(clients, names, stack).exists(retry=clients.retry, timeout=clients.patience.answer)
    return found


def versions(clients: Clients, names: Names, stack: str) -> list[Version]:
    """All that the bucket keeps of a stack's state, newest first. Raises Failed."""
    name = locks.state_name(names, stack)
    with _asking(clients, names, f"read the state of {stack}", "list"):
        live = {int(blob.generation) for blob in _blobs(clients, names, name, versions=False)}
        return [
            _version(clients, blob, int(blob.generation) in live)
            for blob in sorted(_blobs(clients, names, name, versions=True), key=lambda each: -int(each.generation))
        ]


def _blobs(clients: Clients, names: Names, name: str, *, versions: bool) -> list[Any]:
    found = clients.storage.list_blobs(
        clients.storage.bucket(names.state_bucket),
        prefix=name,
        versions=versions,
        retry=clients.retry,
        timeout=clients.patience.answer,
    )
    return [blob for blob in found if blob.name == name]


def _version(clients: Clients, blob: Any, live: bool) -> Version:
    content = blob.bucket.blob(blob.name, generation=blob.generation).download_as_bytes(
        retry=clients.retry, timeout=clients.patience.answer
    )
    state, problem = None, ""
    try:
        state = parse(content)
    except ValueError as error:
        problem = str(error)
    return Version(
        generation=int(blob.generation),
        when=blob.time_created,
        live=live,
        content=content,
        state=state,
        problem=problem,
    )


def last_good(found: Sequence[Version]) -> Version | None:
    """The newest whole version, of these newest first; but the one before it where a state was begun anew.

    Where there is no state, Terraform writes an empty one, of another lineage than the one that is lost; a deploy that
    fails then adds the guard. After a destroy the state is empty as well, but of the lineage that owned something.
    """
    whole = [(version, version.state) for version in found if version.state is not None]
    if not whole:
        return None
    newest, present = whole[0]
    if any(state.owned for _, state in whole if state.lineage == present.lineage):
        return newest
    return next((version for version, state in whole if state.owned), newest)


def beside(found: Sequence[Version], live: Version) -> Version | None:
    """The newest version of another lineage that owns what the present state does not own, if one is kept."""
    if live.state is None:
        return None
    lineage, owned = live.state.lineage, set(live.state.owned)
    other = next((each for each in found if each.state is not None and each.state.lineage != lineage), None)
    return other if other is not None and other.state is not None and set(other.state.owned) - owned else None


def restore(clients: Clients, names: Names, stack: str, version: Version, *, another_lineage: bool = False) -> int:
    """Puts a version in the place of the present state; the new serial. Raises Failed."""
    if version.state is None:
        raise Failed(f"{stack}: version {version.generation} is no whole state: {version.problem}")
    return replace(clients, names, stack, version.content, another_lineage=another_lineage)


def replace(clients: Clients, names: Names, stack: str, content: bytes, *, another_lineage: bool = False) -> int:
    """Puts a state in the place of the present one, under its lock; the new serial. Raises Failed.

    The serial is raised above all that were, or Terraform would not believe it to be newer. In a versioned bucket the
    present state stays as an old version.
    """
    wanted = parse(content)
    with locks.taken(clients, names, stack, operation="tpuenv state restore"):
        known = versions(clients, names, stack)
        present = next((each for each in known if each.live), None)
        other = present is not None and present.state is not None and present.state.lineage != wanted.lineage
        if other and not another_lineage:
            raise Failed(
                f"{stack}: that state is of another lineage than the present one: the state was begun anew in "
                "between, and knows other objects. If you mean it, add --another-lineage"
            )
        serial = 1 + max([wanted.serial, *(each.state.serial for each in known if each.state is not None)])
        blob = _blob(clients, names, stack)
        with _asking(clients, names, f"write the state of {stack}", "create"):
            try:
                blob.upload_from_string(
                    json.dumps({**json.loads(content), "serial": serial}, indent=2),
                    content_type="application/json",
                    if_generation_match=present.generation if present else 0,
                    retry=clients.retry,
                    timeout=clients.patience.answer,
                )
            except (NotFound, PreconditionFailed) as error:
                raise _changed(stack) from error
    return serial


def remove(clients: Clients, names: Names, stack: str, version: Version) -> None:
    """Makes the present state an old version, with none in its place. Raises Failed."""
    with (
        locks.taken(clients, names, stack, operation="tpuenv recover"),
        _asking(clients, names, f"move away the state of {stack}", "delete"),
    ):
        try:
            _blob(clients, names, stack).delete(
                if_generation_match=version.generation, retry=clients.retry, timeout=clients.patience.answer
            )
        except (NotFound, PreconditionFailed) as error:
            raise _changed(stack) from error


def _blob(clients: Clients, names: Names, stack: str) -> Blob:
    return clients.storage.bucket(names.state_bucket).blob(locks.state_name(names, stack))


def _changed(stack: str) -> Failed:
    return Failed(f"{stack}: its state changed in between; nothing was written. Try again")


def _asking(clients: Clients, names: Names, what: str, verb: str) -> Any:
    return clients.asking(f"{what} in gs://{names.state_bucket}", permission=f"storage.objects.{verb}", role=_ROLE)
