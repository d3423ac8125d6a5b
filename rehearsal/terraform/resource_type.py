"""What the protocol asks of a resource type, and what a rule gets to see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rehearsal.cloud import Attributes, Cloud
from rehearsal.terraform import planning
from rehearsal.terraform.schemas import Block
from rehearsal.terraform.values import Value


class Refusal(Exception):
    """The cloud, the cluster or the provider says no. The message is what Terraform prints after "Error: ".

    `left` is what exists all the same, half made: Terraform keeps it in the state, tainted if it was to be created.
    """

    def __init__(self, message: str, detail: str = "", *, left: Attributes | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.left = left


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a rehearsal happens: the address of its server, and its folder."""

    address: str = ""
    folder: Path = Path()

    @property
    def stacks(self) -> Path:
        """Terraform works in `stacks/<stack>`."""
        return self.folder / "cdktf.out" / "stacks"

    @property
    def processes(self) -> Path:
        """Where processes are written down."""
        return self.folder / "processes"


@dataclass(frozen=True, kw_only=True)
class Client:
    """One configured provider: the cloud it talks to, the settings of its `provider` block (unknown ones are
    `Unknown`), and the service account it acts as (empty: the project's administrator).
    """

    cloud: Cloud
    settings: Attributes = field(default_factory=dict)
    account: str = ""
    place: Place = field(default_factory=Place)
    warn: Callable[[str], None] = lambda _: None


class ResourceType(Protocol):
    """One resource type.

    All values are Terraform's: dicts by attribute name, lists of blocks. Each call raises `Refusal` to say no.
    """

    @property
    def type_(self) -> str:
        """Terraform's name of the type."""
        ...

    def forces(self, prior: Attributes, planned: Attributes) -> list[planning.Path]:
        """What replaces the resource by the provider's code; vocabulary/resource_types has what does by its schema."""
        ...

    def plan(self, client: Client, block: Block, prior: Attributes | None, planned: Attributes) -> Attributes:
        """`planned` with the values that the real provider knows before it asks the cloud."""
        ...

    def read(self, client: Client, block: Block, state: Attributes) -> Attributes | None:
        """The resource as it is now, or None when it is gone."""
        ...

    def create(self, client: Client, block: Block, planned: Attributes) -> Attributes:
        """Create it; what is still unknown in `planned` gets its value in the answer."""
        ...

    def update(self, client: Client, block: Block, prior: Attributes, planned: Attributes) -> Attributes:
        """Change it in place."""
        ...

    def delete(self, client: Client, block: Block, prior: Attributes) -> None:
        """Remove it; nothing happens when it is gone already."""
        ...

    def find(self, client: Client, id_: str) -> Attributes:
        """For `terraform import`: the attributes that identify what has this id, enough for `read`."""
        ...


class DataSource(Protocol):
    """One data source."""

    @property
    def type_(self) -> str: ...

    def read(self, client: Client, config: Attributes) -> dict[str, Value]:
        """The whole value, with the configuration in it."""
        ...
