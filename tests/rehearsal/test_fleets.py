"""Every case's environment, with jobs running: up, nothing to do, a drain given up, an upgrade, and down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rehearsal.inventory import remains
from tests.rehearsal.conftest import FLEET
from tests.rehearsal.deployed import addresses, admitted, api_of, deploy, destroy, submit, workloads
from tests.rehearsal.fake import FakeCloud
from tests.synthesis import CASES, Synthesis


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_case_goes_up_stays_as_it_is_and_comes_down_with_jobs_running(
    case: str, synthesis: Synthesis, tmp_path: Path
) -> None:
    fake = deploy(synthesis.folder(case), tmp_path / "world")
    managed = [address for address in fake.resources if not address.startswith("terraform_data.")]
    assert [address for address in managed if not fake.unchanged(address)] == []
    submit(api_of(fake), synthesis.folder(case))
    assert admitted(api_of(fake))
    destroy(fake, list(fake.resources))
    assert remains(fake.cloud, synthesis.environment(case).names.state_bucket) == []
    fake.close()


@pytest.mark.slow
def test_destroying_only_the_queues_leaves_no_object_of_theirs_and_every_job(
    fleet: FakeCloud, synthesis: Synthesis
) -> None:
    api = api_of(fleet)
    submit(api, synthesis.folder(FLEET))
    jobs = len(workloads(api))
    destroy(fleet, addresses(synthesis.folder(FLEET), "queues"))
    for kind in ("ClusterQueue", "LocalQueue", "ResourceFlavor", "WorkloadPriorityClass"):
        assert api.all(api.resource("kueue.x-k8s.io/v1beta2", kind)) == []
    assert len(workloads(api)) == jobs
    assert admitted(api) == set()


def test_a_deploy_after_a_destroy_that_was_given_up_opens_the_queues_again(
    fleet: FakeCloud, synthesis: Synthesis
) -> None:
    api = api_of(fleet)
    submit(api, synthesis.folder(FLEET))
    running = admitted(api)
    drains = [address for address in fleet.resources if address.startswith("helm_release.drain-")]
    assert len(drains) == 3
    for drain in drains:
        fleet.destroy(drain)
    assert admitted(api) == set()
    fleet.deploy(synthesis.stack(FLEET, "queues"))
    policies = {
        queue["spec"]["stopPolicy"] for queue in api.all(api.resource("kueue.x-k8s.io/v1beta2", "ClusterQueue"))
    }
    assert policies == {"None"}
    assert admitted(api) == running


@pytest.mark.parametrize("release", ["kueue", "jobset"])
def test_an_upgrade_keeps_every_queue_and_job(release: str, fleet: FakeCloud, synthesis: Synthesis) -> None:
    api = api_of(fleet)
    submit(api, synthesis.folder(FLEET))
    jobs, running = len(workloads(api)), admitted(api)
    planned, replaced = fleet.plan(f"helm_release.{release}", values=[json.dumps({"changed": True})])
    assert replaced == []
    assert planned["values"] != fleet.resources[f"helm_release.{release}"].config["values"]
    fleet.change(f"helm_release.{release}", timeout=901)
    assert len(workloads(api)) == jobs
    assert admitted(api) == running
