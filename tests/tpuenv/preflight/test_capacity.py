"""The rows about quotas, machine types, versions of GKE and reservations."""

from __future__ import annotations

from typing import Any

import pytest

from environment.cpu_machine_types import SERIES, cpu_machine_type
from environment.tpu_catalogue import MACHINE_TYPES
from rehearsal.google.compute_api import RESERVATION
from rehearsal.google.network import CLUSTER
from tests.fleets import one_group
from tests.google_project import FakeProject
from tests.google_replies import switched_off
from tpuenv.preflight import offers, quotas, reservations, tpu_quotas

FAMILY = "TPUS-PER-TPU-FAMILY"
RESERVED = one_group("type: v5p-128, slices: 2, capacity: reservation, reservation: ours, zone: us-east5-a")
RESERVATION_NAME = "projects/some-project/zones/us-east5-a/reservations/ours"
CLUSTER_NAME = "projects/some-project/locations/us-east5/clusters/tpu-cluster"


def region(**quotas: float) -> dict[str, Any]:
    """The answer of regions.get with these quotas alone: limits, and usage by names that end with _used."""
    names = [name for name in quotas if not name.endswith("_used")]
    listed = [{"metric": name, "limit": quotas[name], "usage": quotas.get(f"{name}_used", 0.0)} for name in names]
    return {"kind": "compute#region", "name": "us-east5", "quotas": listed}


def test_every_machine_and_disk_of_the_catalogues_has_its_quota() -> None:
    assert {machine.series for machine in MACHINE_TYPES} == set(tpu_quotas.QUOTAS)
    disks = {machine.boot_disk for machine in MACHINE_TYPES}
    disks |= {cpu_machine_type(f"{series}-standard-8").boot_disk for series in SERIES}
    assert disks <= set(quotas.DISKS)


def test_a_quota_that_is_too_low_is_missing_and_asked_for_with_what_others_use(google: FakeProject) -> None:
    google.reply(r"/regions/us-east5\Z", region(N2_CPUS=72.0, N2_CPUS_used=48.0))
    row = google.rows(quotas.CHECK)["N2_CPUS"]
    assert (row.need, row.have, row.verdict.value) == ("36", "72, 48 used", "missing")
    assert row.fix == (
        "gcloud beta quotas preferences create --service=compute.googleapis.com --project=some-project "
        "--quota-id=N2-CPUS-per-project-region --preferred-value=84 --dimensions=region=us-east5"
    )


def deployed(google: FakeProject) -> None:
    google.cloud.put(CLUSTER, CLUSTER_NAME, {"name": "tpu-cluster", "location": "us-east5"})


@pytest.mark.parametrize(
    ("limit", "used", "verdict"), [(76, 40, "ok"), (76, 41, "unknown"), (36, 36, "unknown"), (35, 16, "missing")]
)
def test_of_a_deployed_environment_it_is_unknown_how_much_of_the_usage_is_its_own(
    google: FakeProject, limit: int, used: int, verdict: str
) -> None:
    deployed(google)
    google.reply(r"/regions/us-east5\Z", region(N2_CPUS=limit, N2_CPUS_used=used))
    row = google.rows(quotas.CHECK)["N2_CPUS"]
    assert (row.need, row.verdict.value) == ("36", verdict)
    assert ("this environment's own included" in row.have) == (verdict == "unknown")


def test_a_deployed_environment_needs_no_further_network(google: FakeProject) -> None:
    deployed(google)
    full = {"quotas": [{"metric": "NETWORKS", "limit": 5.0, "usage": 5.0}]}
    google.reply(r"/compute/v1/projects/some-project\Z", full)
    assert google.rows(quotas.CHECK)["NETWORKS"].verdict.value == "ok"


def test_a_quota_that_google_does_not_list_is_unknown(google: FakeProject) -> None:
    google.reply(r"/regions/us-east5\Z", region(N2_CPUS=72.0))
    row = google.rows(quotas.CHECK)["SSD_TOTAL_GB"]
    assert (row.verdict.value, row.have) == ("unknown", "Google lists no such quota")
    assert row.fix == "https://console.cloud.google.com/iam-admin/quotas?project=some-project"
    assert google.rows(quotas.CHECK, CPU_MACHINE_TYPE="c4-standard-8")["vCPUs of c4"].verdict.value == "unknown"


def test_cloud_nat_takes_an_address_for_1008_nodes(google: FakeProject) -> None:
    assert google.rows(quotas.CHECK, CPU_MAX_NODES="998", NUM_TPU_POOLS="2")["STATIC_ADDRESSES"].need == "1"
    assert google.rows(quotas.CHECK, CPU_MAX_NODES="998", NUM_TPU_POOLS="3")["IN_USE_ADDRESSES"].need == "2"


def test_a_project_that_has_all_its_networks_already_is_missing_one(google: FakeProject) -> None:
    full = {"quotas": [{"metric": "NETWORKS", "limit": 5.0, "usage": 5.0}]}
    google.reply(r"/compute/v1/projects/some-project\Z", full)
    row = google.rows(quotas.CHECK)["NETWORKS"]
    assert (row.verdict.value, row.have) == ("missing", "5, 5 used")
    assert "--quota-id=NETWORKS-per-project --preferred-value=6" in row.fix


def test_vcpus_of_every_series_count_in_the_quota_of_the_whole_project_where_there_is_one(google: FakeProject) -> None:
    assert "CPUS_ALL_REGIONS" not in google.rows(quotas.CHECK)
    new = {"quotas": [{"metric": "CPUS_ALL_REGIONS", "limit": 32.0, "usage": 4.0}]}
    google.reply(r"/compute/v1/projects/some-project\Z", new)
    for machine_type in ("n2-standard-8", "c4-standard-8"):
        row = google.rows(quotas.CHECK, CPU_MACHINE_TYPE=machine_type)["CPUS_ALL_REGIONS"]
        assert (row.need, row.have, row.verdict.value) == ("36", "32, 4 used", "missing")
        assert "--quota-id=CPUS-ALL-REGIONS-per-project --preferred-value=40" in row.fix


@pytest.mark.parametrize(
    ("infos", "verdict", "have"),
    [
        ([{"dimensions": {"region": "us-east5", "tpu_family": "CT6E"}, "details": {"value": "31"}}], "missing", "31"),
        ([{"dimensions": {"region": "us-east5", "tpu_family": "CT6E"}, "details": {"value": "32"}}], "ok", "32"),
        ([{"dimensions": {"tpu_family": "CT6E"}, "details": {"value": "-1"}}], "ok", "unlimited"),
        # The most specific entry counts, and no entry of another region or family.
        (
            [
                {"dimensions": {"region": "us-east5", "tpu_family": "CT6E"}, "details": {"value": "16"}},
                {"dimensions": {"region": "us-east5", "tpu_family": "TPU7X"}, "details": {"value": "64"}},
                {"dimensions": {"region": "us-east1", "tpu_family": "CT6E"}, "details": {"value": "64"}},
                {"details": {"value": "64"}},
            ],
            "missing",
            "16",
        ),
        ([{"dimensions": {"region": "us-east1"}, "details": {"value": "64"}}], "unknown", "states no value"),
        ([{"dimensions": {"tpu_family": "CT6E"}, "details": {}}], "unknown", "states no value"),
        ([], "unknown", "states no value"),
    ],
)
def test_the_quota_of_a_family_is_the_one_of_the_region(
    google: FakeProject, infos: list[dict[str, Any]], verdict: str, have: str
) -> None:
    google.reply(FAMILY, {"quotaId": FAMILY, "dimensionsInfos": infos})
    row = google.rows(tpu_quotas.CHECK)["ct6e chips"]
    assert (row.verdict.value, have in row.have) == (verdict, True), row
    if verdict == "missing":
        assert "--preferred-value=32 --dimensions=region=us-east5,tpu_family=CT6E" in row.fix


def test_spot_and_flex_start_count_as_preemptible_and_reserved_chips_do_not_count(google: FakeProject) -> None:
    groups = {
        "a": "type: v6e-16, slices: 1, capacity: spot",
        "b": "type: v6e-16, slices: 2, capacity: flex-start",
        "c": "type: v5p-128, slices: 2, capacity: reservation, reservation: ours",
        "d": "type: v5litepod-16, slices: 1",
        "e": "type: tpu7x-64, slices: 1, capacity: spot",
    }
    pools = "".join(f"  {name}: {{{keys}}}\n" for name, keys in groups.items())
    rows = google.rows(tpu_quotas.CHECK, f"tpu_pools:\n{pools}teams:\n  research:\n")
    assert rows["preemptible ct6e chips"].need == "48"
    assert "ct6e chips" not in rows
    assert not any("V5P" in what or "ct5p" in what for what in rows)
    assert (rows["TPU_LITE_PODSLICE_V5"].need, rows["TPU_LITE_PODSLICE_V5"].verdict.value) == ("16", "ok")
    assert rows["preemptible tpu7x chips"].verdict.value == "unknown"


def chips(value: int, *, family: bool = False) -> dict[str, Any]:
    dimensions = {"region": "us-east5", **({"tpu_family": "CT6E"} if family else {})}
    return {"dimensionsInfos": [{"dimensions": dimensions, "details": {"value": str(value)}}]}


@pytest.mark.parametrize(
    ("preemptible", "family", "verdicts"),
    [
        (48, 0, {"preemptible ct6e chips": ("48", "ok")}),
        (16, 32, {"preemptible ct6e chips": ("16", "ok"), "ct6e chips": ("32", "ok")}),
        (16, 31, {"preemptible ct6e chips": ("48", "missing")}),
        (15, 32, {"preemptible ct6e chips": ("48", "missing")}),
    ],
)
def test_for_flex_start_of_v6e_either_quota_is_enough(
    google: FakeProject, preemptible: int, family: int, verdicts: dict[str, tuple[str, str]]
) -> None:
    groups = (
        "  a: {type: v6e-16, slices: 1, capacity: spot}\n"
        "  b: {type: v6e-16, slices: 1, capacity: flex-start}\n"
        "  c: {type: v6e-16, slices: 1, capacity: queued}\n"
    )
    google.reply("PREEMPTIBLE-TPU-V6E", chips(preemptible))
    google.reply(FAMILY, chips(family, family=True))
    rows = google.rows(tpu_quotas.CHECK, f"tpu_pools:\n{groups}teams:\n  research:\n")
    assert {what: (row.need, row.verdict.value) for what, row in rows.items()} == verdicts


def test_flex_start_of_other_generations_takes_the_preemptible_quota_alone(google: FakeProject) -> None:
    google.reply("PREEMPTIBLE-TPU-V5P", chips(0))
    google.reply("/TPU-V5P", chips(1000))
    rows = google.rows(tpu_quotas.CHECK, one_group("type: v5p-128, slices: 1, capacity: flex-start"))
    assert {what: row.verdict.value for what, row in rows.items()} == {"preemptible ct5p chips": "missing"}


def test_the_quota_of_tpu_vms_is_another_and_unknown(google: FakeProject) -> None:
    fleet = one_group("type: v6e-16, slices: 1") + "tpu_vms:\n  lab: {type: v6e-16, team: research}\n"
    row = google.rows(tpu_quotas.CHECK, fleet)["TPU VMs lab"]
    assert row.verdict.value == "unknown"
    assert "service=tpu.googleapis.com" in row.fix


def test_quotas_of_an_api_that_is_off_are_unknown_with_what_enables_it(google: FakeProject) -> None:
    google.reply(FAMILY, switched_off("cloudquotas.googleapis.com"), status=403)
    row = google.rows(tpu_quotas.CHECK)["ct6e chips"]
    assert (row.verdict.value, row.have) == ("unknown", "cloudquotas.googleapis.com is off")
    assert row.fix == "gcloud services enable cloudquotas.googleapis.com --project=some-project"


def test_a_machine_type_that_a_zone_has_not_is_missing_with_the_zones_that_have_it(google: FakeProject) -> None:
    google.reply("machineTypes/ct6e-standard-4t", {"error": {"code": 404, "message": "not found"}}, status=404)
    rows = google.rows(offers.CHECK)
    row = rows["machine type ct6e-standard-4t"]
    assert (row.verdict.value, row.have) == ("missing", "not offered there")
    assert "us-east5-b" in row.fix
    assert rows["machine type n2-standard-8"].verdict.value == "ok"


def versions(default: str, *valid: str) -> dict[str, Any]:
    return {"channels": [{"channel": "REGULAR", "defaultVersion": default, "validVersions": [*valid, default]}]}


NEWER = "1.34.1-gke.1829001"


@pytest.mark.parametrize(
    ("settings", "answer", "verdict", "have", "fix"),
    [
        ({}, versions("1.33.5-gke.1"), "ok", "1.33.5-gke.1", ""),
        ({"GKE_VERSION": "1.34"}, versions("1.33.5-gke.1", NEWER), "ok", NEWER, ""),
        ({"GKE_VERSION": "1.34.1"}, versions("1.33.5-gke.1", NEWER), "ok", NEWER, ""),
        ({"GKE_VERSION": "1.34"}, versions("1.33.5-gke.1"), "missing", "REGULAR has 1.33.5-gke.1", "GKE_VERSION=1.33"),
        ({"GKE_VERSION": "1.34.1"}, versions("1.34.10-gke.5"), "missing", "has 1.34.10-gke.5", "=1.34.10-gke.5"),
        ({"TPU_TYPE": "tpu7x-64"}, versions("1.34.0-gke.2200000", NEWER), "missing", "1.34.0-gke.22", f"={NEWER}"),
        ({"TPU_TYPE": "tpu7x-64"}, versions("1.33.5-gke.1"), "missing", "1.33.5-gke.1", "RELEASE_CHANNEL=RAPID"),
        ({"TPU_TYPE": "tpu7x-64"}, versions(NEWER), "ok", NEWER, ""),
        ({"TPU_TYPE": "tpu7x-8", "CLUSTER_MODE": "autopilot"}, versions(NEWER), "missing", NEWER, "=RAPID"),
        (
            {"TPU_TYPE": "tpu7x-8", "CLUSTER_MODE": "autopilot"},
            versions("1.34.1-gke.2541000"),
            "ok",
            "1.34.1-gke.2541000",
            "",
        ),
        ({}, {"channels": []}, "missing", "REGULAR has no versions", "RELEASE_CHANNEL=RAPID"),
        ({"RELEASE_CHANNEL": "RAPID"}, {"channels": []}, "missing", "RAPID has no versions", "get-server-config --pro"),
    ],
)
def test_the_version_of_gke_is_one_of_the_channel_and_knows_the_tpus(
    google: FakeProject, settings: dict[str, str], answer: dict[str, Any], verdict: str, have: str, fix: str
) -> None:
    google.reply("serverConfig", answer)
    row = google.rows(offers.CHECK, **settings)["GKE version"]
    assert (row.verdict.value, have in row.have, fix in row.fix) == (verdict, True, True), row


@pytest.mark.parametrize(
    ("zone", "zones", "verdict", "have"),
    [
        ("us-east5-b", ["us-east5-a", "us-east5-b"], "ok", "has them"),
        ("us-east5-c", ["us-east5-a", "us-east5-b"], "unknown", "us-east5-a, us-east5-b"),
        ("us-east5-b", None, "ok", "standard zones"),
        ("us-east5-ai1a", None, "unknown", "not created yet"),
    ],
)
def test_an_autopilot_cluster_need_not_have_the_zones_of_its_pool_groups(
    google: FakeProject, zone: str, zones: list[str] | None, verdict: str, have: str
) -> None:
    if zones:
        google.cloud.put(CLUSTER, CLUSTER_NAME, {"name": "tpu-cluster", "location": "us-east5"})
        google.reply(r"/clusters/tpu-cluster\Z", {"name": "tpu-cluster", "locations": zones})
    row = google.rows(offers.CHECK, ZONE=zone, CLUSTER_MODE="autopilot")["zones of the cluster"]
    assert (row.need, row.verdict.value) == (zone, verdict)
    assert have in row.have
    assert "zones of the cluster" not in google.rows(offers.CHECK, ZONE=zone)


def specific(count: int, *, used: int = 0, machine_type: str = "ct5p-hightpu-4t", **more: Any) -> dict[str, Any]:
    """As reservations.get shows it."""
    of_type = {"count": str(count), "inUseCount": str(used), "instanceProperties": {"machineType": machine_type}}
    return {"specificReservation": of_type, "specificReservationRequired": True, "status": "READY", **more}


def aggregate(chips: int, *, used: int = 0, family: str = "VM_FAMILY_CLOUD_TPU_POD_SLICE_CT5P") -> dict[str, Any]:
    resources = {
        key: [{"accelerator": {"acceleratorCount": count, "acceleratorType": "ct5p"}}]
        for key, count in (("reservedResources", chips), ("inUseResources", used))
    }
    reserved = {"vmFamily": family, "workloadType": "BATCH", **resources}
    return {"aggregateReservation": reserved, "specificReservationRequired": True, "status": "READY"}


@pytest.mark.parametrize(
    ("reservation", "verdict", "have"),
    [
        (None, "missing", "does not exist there"),
        (specific(32), "ok", "32 x ct5p-hightpu-4t, 0 used"),
        (specific(31), "missing", "31 x ct5p-hightpu-4t, 0 used"),
        (specific(40, used=16), "missing", "40 x ct5p-hightpu-4t, 16 used"),
        (specific(32, machine_type="ct6e-standard-4t"), "missing", "it is of ct6e-standard-4t"),
        (specific(32, status="CREATING"), "missing", "it is CREATING"),
        (specific(32, specificReservationRequired=False), "missing", "made without --require-specific-reservation"),
        (aggregate(128), "ok", "32 x VM_FAMILY_CLOUD_TPU_POD_SLICE_CT5P, 0 used"),
        (aggregate(128, used=64), "missing", "16 used"),
        (aggregate(128, family="VM_FAMILY_CLOUD_TPU_LITE_POD_SLICE_CT6E"), "missing", "it is of VM_FAMILY_CLOUD_TPU_L"),
    ],
)
def test_a_reservation_exists_matches_and_has_room(
    google: FakeProject, reservation: dict[str, Any] | None, verdict: str, have: str
) -> None:
    if reservation:
        google.cloud.put(RESERVATION, RESERVATION_NAME, reservation)
    row = google.rows(reservations.CHECK, RESERVED)["reservation ours"]
    assert row.need == "32 x ct5p-hightpu-4t in us-east5-a"
    assert (row.verdict.value, have in row.have) == (verdict, True), row


@pytest.mark.parametrize(
    ("count", "used", "verdict"), [(64, 32, "ok"), (32, 32, "unknown"), (40, 16, "unknown"), (31, 0, "missing")]
)
def test_of_a_deployed_environment_it_is_unknown_how_much_of_a_reservation_it_uses_itself(
    google: FakeProject, count: int, used: int, verdict: str
) -> None:
    deployed(google)
    google.cloud.put(RESERVATION, RESERVATION_NAME, specific(count, used=used))
    assert google.rows(reservations.CHECK, RESERVED)["reservation ours"].verdict.value == verdict


def test_a_shared_reservation_is_asked_for_where_it_is(google: FakeProject) -> None:
    fleet = RESERVED.replace("ours", "projects/the-owner/reservations/ours, reservation_block: block-1")
    google.reply("/projects/the-owner/", {"error": {"code": 403, "message": "no"}}, status=403)
    row = google.rows(reservations.CHECK, fleet)["reservation ours"]
    assert (row.verdict.value, row.have) == ("unknown", "takes compute.reservations.get")
    assert row.fix.startswith("gcloud projects add-iam-policy-binding the-owner ")
