"""Regions, zones and GKE versions that Google does not have are refused in its words, unless somebody knows better."""

from __future__ import annotations

from pathlib import Path

import pytest

from rehearsal.google.locations import offer
from rehearsal.inventory import remains
from rehearsal.terraform.resource_type import Refusal
from tests import published
from tests.rehearsal.fake import FakeCloud
from tpuenv.main import main

CLUSTER = "google_container_cluster.cluster"
CPU = "google_container_node_pool.cpu-pool"
SUBNET = "google_compute_subnetwork.subnet"
TENSORBOARD = "google_vertex_ai_tensorboard.tensorboard"


@pytest.mark.parametrize(
    ("address", "changes", "words", "unknown"),
    [
        (
            SUBNET,
            {"region": "us-esat5"},
            r"Subnetwork: .*Error 403: Permission denied on 'locations/us-esat5' \(or it may not exist\)",
            "us-esat5",
        ),
        (CLUSTER, {"node_locations": ["us-east5-x"]}, 'Error 400: Location "us-east5-x" does not exist', "us-east5-x"),
        (CPU, {"node_locations": ["us-east5-x"]}, 'Error 400: Location "us-east5-x" does not exist', "us-east5-x"),
        (
            CLUSTER,
            {"min_master_version": "1.99"},
            'Error 400: Master version "1.99" is unsupported., badRequest',
            "1.99",
        ),
        (CLUSTER, {"min_master_version": "1.31.2-gke.1"}, "is unsupported", "1.31.2-gke.1"),
        (TENSORBOARD, {"region": "us-central9"}, "Permission denied on 'locations/us-central9'", "us-central9"),
    ],
)
def test_what_google_does_not_have_is_refused_unless_it_is_said_to_exist(
    deployed: FakeCloud, address: str, changes: dict[str, object], words: str, unknown: str
) -> None:
    with pytest.raises(Refusal, match=words):
        deployed.again(address, **changes)
    offer(deployed.cloud, unknown)
    deployed.apply(deployed.resources[address])


def test_an_extended_channel_keeps_what_others_have_dropped(deployed: FakeCloud) -> None:
    deployed.again(CLUSTER, min_master_version="1.32", release_channel__channel="EXTENDED")


def test_what_is_said_to_exist_is_not_left_over(empty: FakeCloud) -> None:
    offer(empty.cloud, "us-esat5")
    assert remains(empty.cloud, "states") == []


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TPUENV_FOLDER", str(published.folder(tmp_path)))
    return tmp_path / "world"


@pytest.mark.parametrize("command", ["rehearse", "rehearse-pipeline"])
@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"REGION": "us-esat5", "ZONE": "us-esat5-b"}, "REGION: 'us-esat5' is not among Google's regions"),
        ({"GKE_VERSION": "1.99"}, "GKE_VERSION: '1.99' is newer than 1.37"),
    ],
)
def test_a_rehearsal_of_it_is_refused_before_it_starts(
    command: str,
    settings: dict[str, str],
    line: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for key, value in settings.items():
        monkeypatch.setenv(key, value)
    assert main([command, "--folder", str(folder)]) == 2
    (printed,) = capsys.readouterr().err.splitlines()
    assert printed.startswith(line)
    assert printed.endswith(f"; if it exists, run `tpuenv {command} --yes-it-exists`")
    assert not folder.exists()
