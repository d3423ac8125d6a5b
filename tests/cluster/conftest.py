"""The cluster of KUBECONFIG, with Kueue and JobSet in it, for as long as the tests run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import environment
from environment import Environment
from tests.admission_cases import CASES
from tests.cluster.api import ApiServer, until
from tests.cluster.deployed import Deployed
from tests.cluster.ground import CannotUse, can_run_pods, reached, refuse_a_cluster_in_use, what_is_ours
from tests.cluster.lab import CONTROLLERS, Terraform, for_a_lab, releases_of_local_charts
from tests.synthesis import read_stack, synthesize
from vocabulary.keys import POOL_GROUP_LABEL, SYSTEM_GROUP

# Read before tests/conftest.py takes what leads to a cluster out of the environment of every test.
KUBECONFIG = os.environ.get("KUBECONFIG", "")

VARS = """\
PROJECT_ID=my-project
PROJECT_NUMBER=123456789012
DELETION_PROTECTION=false
RBAC_SECURITY_GROUP=gke-security-groups@example.com
BUILD_REPOSITORY=projects/my-project/locations/us-east5/connections/github/repositories/tpu-environment
BUILDER_IMAGE=us-east5-docker.pkg.dev/my-project/tpu-builder/builder@sha256:{digest}
"""
FLEET = """\
tpu_pools: {dev: {type: v6e-16, slices: 2}, serve: {type: v6e-8, slices: 2}, lab: {type: v6e-16, slices: 1}}
teams:
  research: {pools: [dev, serve], members: [alice@example.com, "group:research@example.com"]}
  serving: {pools: [dev, serve], members: [carol@example.com]}
  older: {pools: [lab], host_access: true, members: [dave@example.com]}
"""


@pytest.fixture(scope="session")
def described(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Teams with people and a group, one with host_access, and a pipeline whose plans read the cluster."""
    folder = tmp_path_factory.mktemp("described")
    (folder / "vars.env").write_text(VARS.format(digest="0" * 64))
    (folder / "fleet.yaml").write_text(FLEET)
    return environment.load(folder / "vars.env", {}, fleet=folder / "fleet.yaml")


@pytest.fixture(scope="session")
def synthesized(described: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthesize(described, tmp_path_factory.mktemp("synthesized"))


@pytest.fixture(scope="session")
def api(described: Environment) -> Iterator[ApiServer]:
    """A cluster without anything of ours, before and after."""
    namespaces = {team.name for team in described.teams}
    for path in (CASES.parent / "fleets").glob("*.yaml"):
        objects = yaml.safe_load_all(path.read_text(encoding="utf-8"))
        namespaces |= {item["metadata"]["namespace"] for item in objects if item["kind"] == "LocalQueue"}
    try:
        with reached(KUBECONFIG) as server:
            refuse_a_cluster_in_use(server, namespaces)
            yield server
            until("everything to be deleted", lambda: True if not what_is_ours(server, namespaces) else None)
    except CannotUse as error:
        pytest.exit(str(error), returncode=2)


@pytest.fixture(scope="session")
def controllers(api: ApiServer, synthesized: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Kueue and JobSet: those that are there, else those of the stack `platform`, with its values."""
    nodes = [node["metadata"]["name"] for node in api.list("Node")] if can_run_pods(api) else []
    for node in nodes:
        api.merge("Node", node, {"metadata": {"labels": {POOL_GROUP_LABEL: SYSTEM_GROUP}}})
    if api.serves("ClusterQueue") and api.serves("JobSet"):
        yield
    elif not nodes:
        pytest.exit("the cluster has neither Kueue and JobSet nor a node that could run them", returncode=2)
    else:
        yield from _installed(api, synthesized, tmp_path_factory.mktemp("controllers"))
    for node in nodes:
        api.merge("Node", node, {"metadata": {"labels": {POOL_GROUP_LABEL: None}}})


def _installed(api: ApiServer, synthesized: Path, folder: Path) -> Iterator[None]:
    platform = read_stack(synthesized, "platform")
    others = [f"{type_}.{id_}" for type_, by_id in platform["resource"].items() for id_ in by_id]
    stack = for_a_lab(platform, api.address, without=[address for address in others if address not in CONTROLLERS])
    terraform = Terraform(folder / "stack", stack, assets=Path())
    terraform.apply()
    yield
    terraform.destroy()


@pytest.fixture(scope="session")
def deployed(
    api: ApiServer,
    controllers: None,
    described: Environment,
    synthesized: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Deployed]:
    """`platform` and `queues`. Where no pod can run, without the charts whose programs are Jobs in the cluster."""
    runs_pods = can_run_pods(api)
    stacks = {}
    try:
        for name in ("platform", "queues"):
            stack = read_stack(synthesized, name)
            left_out = [*CONTROLLERS, *([] if runs_pods else releases_of_local_charts(stack))]
            stacks[name] = Terraform(
                tmp_path_factory.mktemp("stacks") / name,
                for_a_lab(stack, api.address, without=left_out),
                assets=synthesized / "stacks" / name / "assets",
            )
            stacks[name].apply()
        teams = tuple(team.name for team in described.teams)
        yield Deployed(api=api, output=synthesized, stacks=stacks, teams=teams, runs_pods=runs_pods)
    finally:
        for team in described.teams if not runs_pods else ():
            for queue in api.list("ClusterQueue"):
                if queue["metadata"]["name"] == team.name:
                    api.merge("ClusterQueue", team.name, {"spec": {"stopPolicy": "HoldAndDrain"}})
        for name in reversed([*stacks]):
            stacks[name].destroy()
