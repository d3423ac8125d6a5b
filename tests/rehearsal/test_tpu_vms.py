"""TPU VMs in the fake cloud: what Google refuses, and what a change does to them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rehearsal.google.tpu_vms import limit
from rehearsal.terraform.resource_type import Refusal
from tests.change_cases import Described
from tests.rehearsal.deployed import addresses, deploy, deploy_again, destroy
from tests.rehearsal.fake import FakeCloud
from tests.synthesis import Synthesis

CASE = "tpu-vms"
LAB, NIGHT = "google_tpu_v2_vm.vm-lab", "google_tpu_v2_vm.vm-night"
FLEET: dict[str, Any] = {
    "tpu_pools": {"train": {"type": "v6e-16", "slices": 1}},
    "teams": {"research": {}},
    "tpu_vms": {"lab": {"type": "v6e-16", "team": "research"}},
}


@pytest.fixture(scope="module")
def once(synthesis: Synthesis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeCloud]:
    fake = deploy(synthesis.folder(CASE), tmp_path_factory.mktemp(CASE) / "world", stacks=("foundation", CASE))
    yield fake
    fake.close()


@pytest.fixture
def vms(once: FakeCloud, tmp_path: Path) -> Iterator[FakeCloud]:
    fake = once.copy(tmp_path / "vms")
    yield fake
    fake.close()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"zone": "us-east5-x"}, "Permission denied on 'locations/us-east5-x'"),
        ({"zone": "us-east5-c"}, "the accelerator v6e-16 was not found in zone us-east5-c"),
        ({"accelerator_type": "v6e-24"}, "the accelerator v6e-24 was not found in zone us-east5-b"),
        ({"accelerator_type": "tpu7x-16"}, "the accelerator tpu7x-16 was not found in zone"),
        ({"runtime_version": "v2-alpha-tpuv5"}, "the runtime version v2-alpha-tpuv5 was not found for v6e-16"),
        ({"network_config__network": "other"}, "global/networks/other' was not found"),
        ({"network_config__subnetwork": "other"}, "subnetworks/other' was not found"),
        ({"zone": "us-east1-d"}, "is not in region us-east1"),
        (
            {"service_account__email": "x@my-project.iam.gserviceaccount.com"},
            "x@my-project.iam.gserviceaccount.com' was",
        ),
        ({"name": "Lab"}, "Invalid value for field 'resource.name': 'Lab'"),
    ],
)
def test_google_refuses_what_does_not_exist(vms: FakeCloud, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(Refusal) as refused:
        vms.make("google_tpu_v2_vm.more", like=LAB, **{"name": "more", **changes})
    assert refused.value.message.startswith("Error creating Vm: googleapi: Error 4")
    assert words in refused.value.message


def test_a_name_that_is_taken_is_refused(vms: FakeCloud) -> None:
    with pytest.raises(
        Refusal, match="Error 409: The resource 'projects/my-project/locations/us-east5-b/nodes/tpu-lab'"
    ):
        vms.make("google_tpu_v2_vm.again", like=LAB)


def test_quota_counts_the_chips_of_a_generation_in_a_zone(vms: FakeCloud) -> None:
    limit(vms.cloud, "v6e", 24)
    vms.make("google_tpu_v2_vm.second", like=LAB, name="second", accelerator_type="v6e-8")
    with pytest.raises(Refusal, match=r"Error 429: Quota limit 'TPUV6EPerProjectPerZoneForTPUAPI' has been exceeded"):
        vms.make("google_tpu_v2_vm.third", like=LAB, name="third", accelerator_type="v6e-1")


def addresses_of(vms: FakeCloud, name: str) -> list[str]:
    return [end["ip_address"] for end in vms.resources[name].state["network_endpoints"]]  # type: ignore[index]


def test_a_slice_has_an_address_for_each_host(vms: FakeCloud) -> None:
    lab, night = addresses_of(vms, LAB), addresses_of(vms, NIGHT)
    assert (len(lab), len(night)) == (4, 1)
    assert len({*lab, *night}) == 5


def test_no_two_slices_share_an_address_after_one_was_deleted(vms: FakeCloud) -> None:
    vms.make("google_tpu_v2_vm.second", like=LAB, name="second")
    vms.destroy(LAB)
    vms.make("google_tpu_v2_vm.third", like="google_tpu_v2_vm.second", name="third")
    second, third = (addresses_of(vms, f"google_tpu_v2_vm.{name}") for name in ("second", "third"))
    assert not {*second} & {*third}


@pytest.mark.parametrize(
    ("changes", "replaced"),
    [
        ({"metadata": {"python-packages": "ray==2"}}, set()),
        ({"tags": ["other"]}, set()),
        ({"description": "other"}, set()),
        ({"accelerator_type": "v6e-32"}, {"accelerator_type"}),
        ({"runtime_version": "tpu-vm-base"}, {"runtime_version"}),
        ({"zone": "us-east5-a"}, {"zone"}),
        ({"scheduling_config": {"spot": True}}, {"scheduling_config"}),
        ({"network_config__enable_external_ips": True}, {"network_config"}),
    ],
)
def test_a_change_replaces_what_the_provider_replaces(
    vms: FakeCloud, changes: dict[str, Any], replaced: set[str]
) -> None:
    _, paths = vms.plan(LAB, **changes)
    assert {path[0] for path in paths} == replaced
    if not replaced:
        vms.change(LAB, **changes)
        assert vms.unchanged(LAB)


def test_a_network_with_tpu_vms_on_it_stays(vms: FakeCloud) -> None:
    with pytest.raises(Refusal, match="already being used by 'projects/my-project/locations/us-east5-"):
        vms.destroy("google_compute_subnetwork.subnet")


def test_what_was_deployed_can_be_imported(vms: FakeCloud) -> None:
    before = vms.resources[LAB].state
    imported = vms.imported(LAB, "projects/my-project/locations/us-east5-b/nodes/tpu-lab")
    assert before is not None and imported is not None
    assert (imported["name"], imported["zone"]) == (before["name"], before["zone"])


@pytest.mark.slow
def test_tpu_vms_come_change_and_go_without_the_rest(tmp_path: Path) -> None:
    first = Described(fleet=FLEET).synthesize(tmp_path / "first")
    more = {"lab": {"type": "v6e-32", "team": "research"}, "night": {"type": "v6e-8", "team": "research"}}
    second = Described(fleet={**FLEET, "tpu_vms": more}).synthesize(tmp_path / "second")
    fake = deploy(first, tmp_path / "world")
    pools = fake.cloud.find("google_container_node_pool")
    deploy_again(fake, second)
    found = {vm.attributes["name"]: vm.attributes["accelerator_type"] for vm in fake.cloud.find("google_tpu_v2_vm")}
    assert found == {"tpu-lab": "v6e-32", "tpu-night": "v6e-8"}
    assert fake.cloud.find("google_container_node_pool") == pools
    destroy(fake, [address for address in addresses(second, CASE) if address in fake.resources])
    assert not fake.cloud.find("google_tpu_v2_vm")
    assert fake.cloud.find("google_container_node_pool") == pools
    fake.close()
