"""What the environment has to offer and to whom: pool groups of equal slices, and teams."""

from __future__ import annotations

from dataclasses import dataclass

from environment.settings import Settings
from environment.tpu import Slice, slice_for


@dataclass(frozen=True, kw_only=True)
class PoolGroup:
    """Equal slices in one zone; every slice is a node pool of its own."""

    name: str  # also the name of its Kueue flavor
    slice: Slice
    slices: int
    zone: str

    @property
    def node_pools(self) -> tuple[str, ...]:
        """One name a slice. A slice keeps its name when others come or go at the end."""
        return tuple(f"{self.name}-{index}" for index in range(self.slices))

    @property
    def hosts(self) -> int:
        return self.slices * self.slice.hosts

    @property
    def chips(self) -> int:
        return self.slices * self.slice.chips


@dataclass(frozen=True, kw_only=True)
class Team:
    """Who submits jobs. The name is also that of its namespace and its ClusterQueue; shares are relative."""

    name: str
    share: int


def groups_of(settings: Settings) -> tuple[PoolGroup, ...]:
    return (
        PoolGroup(
            name="tpu",
            slice=slice_for(settings.tpu_type),
            slices=settings.num_tpu_pools,
            zone=settings.zone,
        ),
    )


def teams_of(settings: Settings) -> tuple[Team, ...]:
    return (Team(name=settings.namespace, share=1),)
