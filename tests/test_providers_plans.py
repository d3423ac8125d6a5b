"""The real providers plan on the state that a rehearsal wrote, and the fake ones plan the same: `make test-providers`.

The state is Terraform's own file; the real providers read it as if they had written it. Nothing is refreshed, and no
API is called.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.change_cases import NAMES, Described, change
from tests.provider_plans import OFFLINE, Failed, Planner, alone, missing, sources_of
from tests.rehearsal.changed import Deployed
from tests.rehearsal.deployed import world_of
from tests.rehearsal.ground import Ground
from tests.synthesis import CASES, STACKS, Synthesis, stacks_of, synthesize

pytestmark = pytest.mark.providers

States = dict[str, Any]


@pytest.fixture(scope="module")
def real(synthesis: Synthesis, tmp_path_factory: pytest.TempPathFactory) -> Planner:
    """Terraform with the real providers; skips where they cannot be had."""
    planner = Planner(folder=tmp_path_factory.mktemp("real"), environment=os.environ, offline=OFFLINE)
    try:
        for stack in STACKS:
            needed = synthesis.stack("default", stack)["terraform"]["required_providers"]
            planner.initialise(stack, {"terraform": {"required_providers": needed}})
    except Failed as failed:
        reason = next((line for line in str(failed).splitlines() if "Error" in line), str(failed))
        pytest.skip(f"the real providers cannot be had here (terraform init: {reason.strip(' │')})")
    return planner


@dataclass
class Comparison:
    """Both kinds of providers, and what they were already asked."""

    fake: Planner
    real: Planner
    asked: set[str] = field(default_factory=set)

    def disagreements(self, output: Path, states: States) -> list[str]:
        """Where they plan otherwise, of everything in `output`, on `states`. A stack that has gone has no plan."""
        there = [stack for stack in states if (output / "stacks" / stack).exists()]
        return [difference for stack in there for difference in self._stack(stack, output, states[stack])]

    def _stack(self, stack: str, output: Path, state: Any) -> list[str]:
        written, assets, sources = _written(output, stack), output / "stacks" / stack / "assets", sources_of(state)
        if missing(written, sources):
            sources = self.fake.sources(stack, written, state, assets)
        described, kept = alone(written, state, sources)
        question = json.dumps([stack, described, kept], sort_keys=True)
        if question in self.asked:
            return []
        self.asked.add(question)
        fake, real = (planner.plan(stack, described, kept, assets) for planner in (self.fake, self.real))
        return [
            f"{stack} {address}:\n  fake {fake.get(address)}\n  real {real.get(address)}"
            for address in sorted({*fake, *real})
            if fake.get(address) != real.get(address)
        ]


def _written(output: Path, stack: str) -> Any:
    return json.loads((output / "stacks" / stack / "cdk.tf.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def deployed(real: Planner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    folder = tmp_path_factory.mktemp("changes")
    with world_of(Described().environment(), folder / "world") as world:
        yield Deployed(world=world, folder=folder)


@pytest.fixture(scope="module")
def comparison(deployed: Deployed, real: Planner, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    fake = Planner(folder=tmp_path_factory.mktemp("fake"), environment=deployed.world.environment())
    return Comparison(fake=fake, real=real)


@pytest.fixture(scope="module")
def states() -> dict[str, States]:
    """The states of the environments that were deployed, by their description."""
    return {}


@pytest.mark.parametrize("name", NAMES)
def test_the_fake_providers_plan_what_the_real_ones_plan(
    name: str, deployed: Deployed, comparison: Comparison, states: dict[str, States]
) -> None:
    meant = change(name)
    deployed.begin(meant.before)
    if meant.before.key not in states:
        states[meant.before.key] = {
            stack: json.loads(deployed.terraform(stack, "state", "pull")) for stack in deployed.stacks(meant.before)
        }
    written = states[meant.before.key]
    differences = comparison.disagreements(deployed.output(meant.before), written)
    differences += comparison.disagreements(deployed.output(meant.after), written)
    assert not differences, "\n".join(differences)


@pytest.mark.parametrize("case", CASES)
def test_the_real_providers_find_nothing_to_do_in_what_a_rehearsal_deployed(
    case: str, real: Planner, synthesis: Synthesis, tmp_path: Path
) -> None:
    configured = synthesis.environment(case)
    with world_of(configured, tmp_path / "world") as world:
        output = synthesize(configured, world.output)
        ground = Ground(world=world)
        for stack in stacks_of(case):
            ground.apply(stack)
            state = json.loads(ground.terraform(stack, "state", "pull"))
            described, kept = alone(_written(output, stack), state, sources_of(state))
            assert real.plan(stack, described, kept, output / "stacks" / stack / "assets") == {}, stack


def test_the_real_providers_plan_manifests_and_charts_from_repositories_too() -> None:
    pytest.skip(
        "the real providers need a live cluster for each kubernetes_manifest (its schema is the API server's) and a"
        " repository for the charts of JobSet and Kueue; `make test-cluster` applies and plans those"
    )
