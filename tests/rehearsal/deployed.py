"""An environment in a fake cloud: deployed in this process, changed, with jobs, and down; or for the real tools."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from environment import Environment
from environment.services import SERVICES
from rehearsal.cloudbuild.resources import connect
from rehearsal.google.storage import BUCKET
from rehearsal.kubernetes.api import Api
from rehearsal.world import Project, World
from tests.rehearsal.fake import CACHE, FakeCloud
from tests.reused_synthesis.copy_synthesis import FOLDER as REUSED
from tests.synthesis import HERE, read_stack
from tests.yaml_files import documents

Going = Callable[[str], None]


def deploy(output: Path, folder: Path, *, services: Iterable[str] = SERVICES, stacks: Sequence[str] = ()) -> FakeCloud:
    """The stacks that were synthesized into `output`, or some of them, in a new cloud in `folder` that has their state
    bucket, and the repository that a person has connected.
    """
    fake = FakeCloud(folder=folder, services=tuple(services))
    (folder / "cdktf.out").symlink_to(output)
    states = read_stack(output, "foundation")["terraform"]["backend"]["gcs"]["bucket"]
    fake.cloud.put(BUCKET, states, {"name": states, "project": fake.project, "location": "us-east5"})
    for stack in stacks or stacks_in(output):
        content = read_stack(output, stack)
        for trigger in content["resource"].get("google_cloudbuild_trigger", {}).values():
            if "repository_event_config" in trigger:
                connect(fake.cloud, trigger["repository_event_config"]["repository"])
        fake.deploy(content)
    return fake


def deploy_again(
    fake: FakeCloud, output: Path, *, going: Going = lambda _: None, new_first: Collection[str] = ()
) -> None:
    """What is in `output` instead: stack by stack, and in each of them what is not described any more goes first.

    Terraform does both at a time where neither needs the other: in the stacks `new_first` what is new comes first.
    `going` hears of every address before it goes.
    """
    link = fake.folder / "cdktf.out"
    before = link.resolve()
    link.unlink()
    link.symlink_to(output)
    for stack in stacks_in(output):
        described = addresses(output, stack)
        if stack in new_first:
            fake.deploy(read_stack(output, stack))
        destroy(fake, [address for address in addresses(before, stack) if address not in described], going=going)
        if stack not in new_first:
            fake.deploy(read_stack(output, stack))


def destroy(fake: FakeCloud, gone: Sequence[str], *, going: Going = lambda _: None) -> None:
    """In the order of `terraform destroy`: what was made last goes first."""
    for address in reversed([address for address in fake.resources if address in gone]):
        going(address)
        fake.destroy(address)
        del fake.resources[address]


def stacks_in(output: Path) -> list[str]:
    """In the order of their deployment."""
    described = json.loads((output / "manifest.json").read_text(encoding="utf-8"))["stacks"]
    order: list[str] = []
    while len(order) < len(described):
        order += [
            name for name, stack in described.items() if name not in order and set(stack["dependencies"]) <= {*order}
        ]
    return order


def world_of(configured: Environment, folder: Path, **settings: str) -> World:
    """A world, in `folder`, whose project is the environment's; the real tools get `settings`.

    What they synthesize is synthesized once for equal input: tests/reused_synthesis.
    """
    project = Project(
        id_=configured.settings.project_id,
        number=configured.settings.project_number or "123456789012",
        region=configured.settings.region,
        state_bucket=configured.names.state_bucket,
        services=list(SERVICES),
        repository=configured.settings.build_repository,
    )
    return World(folder=folder, project=project, cache=CACHE, settings=reusing_syntheses() | settings)


def reusing_syntheses() -> dict[str, str]:
    """Variables of a tool that is to synthesize once for equal input."""
    return {"PYTHONPATH": str(HERE / "reused_synthesis"), REUSED: os.environ[REUSED]}


def addresses(output: Path, stack: str) -> list[str]:
    """Of all resources of a stack."""
    by_type = read_stack(output, stack)["resource"]
    return [f"{type_}.{id_}" for type_, by_id in by_type.items() for id_ in by_id]


def api_of(fake: FakeCloud) -> Api:
    (cluster,) = fake.cloud.find("google_container_cluster")
    return Api(fake.cloud, cluster.name)


def submit(api: Api, output: Path) -> None:
    """hello-tpu of every team, for every pool group that it may use."""
    for path in sorted((output / "manifests").rglob("hello-tpu/jobset.yaml")):
        api.create(of_any_name(path))


def of_any_name(path: Path) -> dict[str, Any]:
    """The object of a manifest, to be created any number of times: the API server completes its name."""
    manifest: dict[str, Any]
    (manifest,) = documents(path)
    manifest["metadata"]["generateName"] = f"{manifest['metadata'].pop('name')}-"
    return manifest


def workloads(api: Api, *teams: str) -> list[dict[str, Any]]:
    """What Kueue knows of: all, or those of some teams."""
    known = api.all(api.resource("kueue.x-k8s.io/v1beta2", "Workload"))
    return [workload for workload in known if not teams or workload["metadata"]["namespace"] in teams]


def admitted(api: Api, *teams: str) -> set[str]:
    """ "namespace/name" of the workloads that run."""
    return {
        f"{workload['metadata']['namespace']}/{workload['metadata']['name']}"
        for workload in workloads(api, *teams)
        if workload.get("status", {}).get("admission")
    }
