"""TPU VMs in fleet.yaml: what they mean, and every mistake at its line."""

from __future__ import annotations

import pytest

from environment import CapacityMode, Environment, load
from environment.fleet.text import fleet_text
from environment.tpu import UnknownTpuType, tpu_vm_slice
from environment.tpu_catalogue import TPU_VM_RUNTIMES
from rehearsal.google.tpu_vms import OFFERS
from tests.fleets import refused_fleet, with_fleet
from tests.synthesis import HERE

FLEET = "tpu_pools:\n  dev: {type: v6e-16, slices: 4}\nteams:\n  research:\n"


def fleet(keys: str, name: str = "lab") -> str:
    """A fleet.yaml with TPU VMs on line 6."""
    return f"{FLEET}tpu_vms:\n  {name}: {keys}\n"


REFUSED = [
    ("{team: research}", "lab", "has no type; add it, such as type: v6e-16"),
    ("{type: v6e-16}", "lab", "has no team; add it, such as team: research"),
    ("{type: v6e-17, team: research}", "lab.type", "unknown TPU type 'v6e-17'; did you mean 'v6e-16'?"),
    (
        "{type: v6e-4x4, team: research}",
        "lab.type",
        "names a shape or a machine type, which TPU VMs do not have; write",
    ),
    ("{type: tpu7x-16, team: research}", "lab.type", "'tpu7x-16' does not exist without GKE; use tpu_pools, or one of"),
    ("{type: v6e-16, team: reserch}", "lab.team", "'reserch' is no team of teams; did you mean 'research'?"),
    ("{type: v6e-16, team: research, tem: x}", "lab.tem", "is not a key; did you mean 'team'?"),
    (
        "{type: v6e-16, team: research, capacity: flex-start}",
        "lab.capacity",
        "'flex-start' is no capacity mode of TPU VMs; there are on-demand, spot, reservation, queued",
    ),
    (
        "{type: v6e-16, team: research, capacity: spott}",
        "lab.capacity",
        "'spott' is no capacity mode of TPU VMs; did you mean 'spot'?",
    ),
    ("{type: v6e-16, team: research, zone: us-west4-a}", "lab.zone", "'us-west4-a' is not in REGION 'us-east5', and"),
    (
        "{type: v6e-16, team: research, runtime: v2-alpha-tpuv5}",
        "lab.runtime",
        "'v2-alpha-tpuv5' is not for v6e; use 'v2-alpha-tpuv6e', or remove it",
    ),
    (
        "{type: v6e-16, team: research, runtime: V2 alpha}",
        "lab.runtime",
        "'V2 alpha' is no software version of TPU VMs; did you mean 'v2-alpha-tpuv5'?",
    ),
    ("[]", "lab", "is a list; it should hold type, team and more"),
]


@pytest.mark.parametrize(("keys", "path", "words"), REFUSED)
def test_a_mistake_is_reported_at_its_line(keys: str, path: str, words: str) -> None:
    problems = refused_fleet(fleet(keys))
    assert problems[0].startswith(f"fleet.yaml:6: tpu_vms.{path}: ")
    assert words in problems[0]


def test_a_name_is_one_of_google() -> None:
    (problem,) = refused_fleet(fleet("{type: v6e-16, team: research}", name="Lab"))
    assert problem.startswith("fleet.yaml:6: tpu_vms.Lab: 'Lab' cannot name TPU VMs; use lower-case letters")


def test_without_teams_no_choice_of_teams_is_announced() -> None:
    problems = refused_fleet(fleet("{type: v6e-16, team: research}").replace("teams:\n  research:\n", ""))
    assert "fleet.yaml:4: tpu_vms.lab.team: 'research' is no team of teams; there are none" in problems


def test_the_name_of_a_team_that_a_terminal_would_obey_is_escaped_in_the_example() -> None:
    problems = refused_fleet(fleet("{type: v6e-16}").replace("research:", "\u202e:"))
    assert "fleet.yaml:6: tpu_vms.lab: has no team; add it, such as team: \\u202e" in problems


def test_names_that_would_be_too_long_are_refused() -> None:
    (problem,) = refused_fleet(fleet("{type: v6e-16, team: research}", name="a" * 60))
    assert "makes the TPU VM name" in problem and "63 are allowed; shorten tpu_vms." in problem
    (problem,) = refused_fleet(fleet("{type: v6e-16, team: research}"), RESOURCE_PREFIX="tpu-of-a-large-team")
    assert "makes the service account name 'tpu-of-a-large-team-vm-research' 31 characters long" in problem
    assert "shorten teams.research or RESOURCE_PREFIX by 1" in problem


def test_their_hosts_need_addresses_of_the_subnet() -> None:
    assert with_fleet(fleet("{type: v6e-16, team: research}"), SUBNET_CIDR="10.0.0.0/26")
    (problem,) = refused_fleet(fleet("{type: v6e-256, team: research}"), SUBNET_CIDR="10.0.0.0/26")
    assert problem.startswith("SUBNET_CIDR: ") and "with its CPU nodes and TPU VMs; use /25 or larger" in problem


def test_the_defaults_follow_from_the_type_and_the_settings() -> None:
    (vm,) = with_fleet(fleet("{type: v5p-16, team: research}"), ZONE="us-east5-a").tpu_vms
    assert (vm.zone, vm.runtime, vm.capacity) == ("us-east5-a", "v2-alpha-tpuv5", CapacityMode.ON_DEMAND)
    assert (vm.slice.hosts, vm.slice.chips, vm.accelerator_type) == (2, 8, "v5p-16")


def test_places_and_software_versions_that_google_does_not_list_are_warned_of() -> None:
    keys = "{type: v5p-16, team: research, zone: us-east5-c, runtime: v2-alpha-tpuv9}"
    warnings = "\n".join(with_fleet(fleet(keys)).warnings)
    assert "tpu_vms.lab.zone: Google's list of November 2026 has no v5p in 'us-east5-c'" in warnings
    assert "tpu_vms.lab.runtime: 'v2-alpha-tpuv9' is not the software version that Google names for v5p" in warnings


def test_a_fleet_file_written_out_again_has_the_same_tpu_vms() -> None:
    case = HERE / "cases" / "tpu-vms"

    def vms(fleet: Environment) -> object:
        return fleet.tpu_vms

    first = load(case.with_suffix(".env"), {}, case.with_suffix(".fleet.yaml"))
    zone = first.settings.zone
    text = fleet_text(first.groups, first.teams, first.tpu_vms, fair_sharing=False, zone=zone, host_access=False)
    assert len(first.tpu_vms) == 3
    assert vms(with_fleet(text)) == vms(first)


@pytest.mark.parametrize(
    ("type_", "hosts", "chips"),
    [("v6e-1", 1, 1), ("v6e-8", 1, 8), ("v6e-16", 4, 16), ("v5litepod-8", 1, 8), ("v5p-8", 1, 4), ("v4-64", 8, 32)],
)
def test_a_slice_that_one_host_can_have_is_one_host(type_: str, hosts: int, chips: int) -> None:
    slice_ = tpu_vm_slice(type_)
    assert (slice_.hosts, slice_.chips) == (hosts, chips)


def test_the_rehearsal_has_the_same_slices_and_software() -> None:
    assert {name: offer.runtimes[0] for name, offer in OFFERS.items()} == TPU_VM_RUNTIMES
    for offer in OFFERS.values():
        for number in range(1, 70):
            type_ = f"{offer.name}-{number * 8}"
            try:
                slice_ = tpu_vm_slice(type_)
            except UnknownTpuType:
                assert not offer.topology(type_)
            else:
                assert (offer.topology(type_), offer.hosts(type_)) == (slice_.topology, slice_.hosts)
