"""The optional stack of TPU VMs: private, each team for itself, and nothing of it where there are none."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stacks.tpu_vms import GOOGLE_BETA_VERSION, IAP_RANGE
from tests.change_cases import Described
from tests.synthesis import HERE, ROOT, STACKS, Synthesis, stacks_of

CASE = "tpu-vms"
TUNNEL = "roles/iap.tunnelResourceAccessor"


@pytest.fixture(scope="module")
def stack(synthesis: Synthesis) -> dict[str, Any]:
    return synthesis.stack(CASE, CASE)


def resources(stack: dict[str, Any], type_: str) -> dict[str, Any]:
    return dict(stack["resource"][type_])


def test_an_environment_without_tpu_vms_has_no_stack_of_them(synthesis: Synthesis) -> None:
    assert CASE not in stacks_of("default")
    assert not (synthesis.folder("default") / "stacks" / CASE).exists()


@pytest.mark.slow
@pytest.mark.parametrize(("case", "imported"), [("default", "False"), (CASE, "True")])
def test_its_module_is_imported_only_where_there_are_tpu_vms(case: str, imported: str) -> None:
    program = (
        "import sys, environment, stacks.app; from pathlib import Path; case = Path(sys.argv[1])\n"
        "loaded = environment.load(case.with_suffix('.env'), {}, case.with_suffix('.fleet.yaml'))\n"
        "stacks.app.app(loaded, Path('unused'))\n"
        "print('stacks.tpu_vms' in sys.modules)"
    )
    command = [sys.executable, "-c", program, str(HERE / "cases" / case)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == imported


def test_the_other_stacks_do_not_know_the_tpu_vms(synthesis: Synthesis) -> None:
    for name in STACKS:
        text = synthesis.text(CASE, name)
        assert "google-beta" not in text
        assert "tpu.googleapis.com" not in text


@pytest.mark.slow
def test_the_identities_of_a_pipeline_are_the_same_with_and_without_tpu_vms(tmp_path: Path) -> None:
    settings = dict(line.split("=", 1) for line in (HERE / "cases" / "pipeline.env").read_text().splitlines()[1:])
    fleet = {"tpu_pools": {"train": {"type": "v6e-16", "slices": 1}}, "teams": {"research": {}}}
    vms = {"lab": {"type": "v6e-16", "team": "research"}}
    without, with_vms = (
        Described(settings=settings, fleet=described).synthesize(tmp_path / name) / "stacks"
        for name, described in (("without", fleet), ("with", {**fleet, "tpu_vms": vms}))
    )
    assert (with_vms / CASE).exists()
    assert (with_vms / "pipeline/cdk.tf.json").read_text() == (without / "pipeline/cdk.tf.json").read_text()


def test_both_providers_of_google_have_the_same_version(stack: dict[str, Any]) -> None:
    required = stack["terraform"]["required_providers"]
    assert required["google-beta"] == {"source": "hashicorp/google-beta", "version": GOOGLE_BETA_VERSION}
    assert required["google"]["version"] == GOOGLE_BETA_VERSION
    assert stack["provider"]["google-beta"] == stack["provider"]["google"]


def test_no_tpu_vm_has_a_public_address_or_an_account_of_all(stack: dict[str, Any]) -> None:
    vms = resources(stack, "google_tpu_v2_vm")
    assert set(vms) == {"vm-lab", "vm-night"}
    for vm in vms.values():
        assert vm["network_config"]["enable_external_ips"] is False
        assert vm["service_account"]["email"] == f"{vm['tags'][0]}@my-project.iam.gserviceaccount.com"
        assert vm["metadata"]["enable-oslogin"] == "TRUE"
        assert vm["metadata"]["startup-script"].startswith("#!/usr/bin/env python3\n")


def test_the_capacity_is_that_of_the_fleet(stack: dict[str, Any]) -> None:
    vms = resources(stack, "google_tpu_v2_vm")
    assert {name: vm.get("scheduling_config") for name, vm in vms.items()} == {
        "vm-lab": None,
        "vm-night": {"spot": True},
    }


def test_only_iap_and_hosts_of_the_same_team_reach_a_tpu_vm(stack: dict[str, Any]) -> None:
    rules = resources(stack, "google_compute_firewall")
    ssh = rules.pop("firewall-ssh")
    assert (ssh["source_ranges"], ssh["allow"]) == ([IAP_RANGE], [{"protocol": "tcp", "ports": ["22"]}])
    assert ssh["target_tags"] == ["tpu-vm-research", "tpu-vm-students"]
    assert {name: (rule["source_tags"], rule["target_tags"]) for name, rule in rules.items()} == {
        f"firewall-hosts-{team}": ([f"tpu-vm-{team}"], [f"tpu-vm-{team}"]) for team in ("research", "students")
    }
    assert not any("source_ranges" in rule for rule in rules.values())


def test_the_account_of_a_team_reaches_its_own_bucket_alone(stack: dict[str, Any]) -> None:
    for grant in resources(stack, "google_storage_bucket_iam_member").values():
        team = grant["member"].partition("account-")[2].partition(".")[0]
        assert grant["bucket"] == f"my-project-tpu-{team}"


def test_only_members_of_the_team_log_in(stack: dict[str, Any]) -> None:
    may = {
        (grant["service_account_id"].partition("account-")[2].partition(".")[0], grant["member"])
        for grant in resources(stack, "google_service_account_iam_member").values()
    }
    assert may == {
        ("research", "user:alice@example.com"),
        ("students", "user:alice@example.com"),
        ("students", "user:bob@example.com"),
    }
    people = {
        (grant["role"], grant["member"], grant.get("condition", {}).get("expression", ""))
        for grant in resources(stack, "google_project_iam_member").values()
        if grant["member"].startswith("user:")
    }
    conditions = {"roles/tpu.viewer": "", TUNNEL: "destination.port == 22", "roles/compute.osLogin": ""}
    assert people == {
        (role, f"user:{who}@example.com", conditions[role]) for role in conditions for who in ("alice", "bob")
    }


def test_queued_tpu_vms_are_a_command_with_all_that_the_others_have(stack: dict[str, Any]) -> None:
    words = shlex.split(stack["output"]["queue_later"]["value"])
    assert words[:6] == ["gcloud", "compute", "tpus", "queued-resources", "create", "tpu-later"]
    flags = dict(word.removeprefix("--").split("=", 1) for word in words[6:] if "=" in word)
    assert "--internal-ips" in words
    vm = resources(stack, "google_tpu_v2_vm")["vm-lab"]
    files = dict(pair.split("=", 1) for pair in flags["metadata-from-file"].split(","))
    metadata = {key: (ROOT / file).read_text(encoding="utf-8") for key, file in files.items()}
    assert metadata | dict(pair.split("=", 1) for pair in flags["metadata"].split(",")) == vm["metadata"]
    assert flags["service-account"] == vm["service_account"]["email"]
    assert flags["tags"] == vm["tags"][0]
    assert (flags["accelerator-type"], flags["runtime-version"]) == ("v5p-16", "v2-alpha-tpuv5")


def test_a_login_of_an_administrator_changes_no_plan(stack: dict[str, Any]) -> None:
    """gcloud writes the key of who logs in into the metadata of the VM, where it has the permission."""
    for vm in resources(stack, "google_tpu_v2_vm").values():
        assert vm["lifecycle"]["ignore_changes"] == ['metadata["ssh-keys"]']


def test_google_may_take_as_long_for_a_slice_of_vms_as_for_one_of_nodes(
    stack: dict[str, Any], synthesis: Synthesis
) -> None:
    """Terraform taints what is not there in time, deletes it, and asks for it again."""
    (nodes, *_) = synthesis.resources("default", "tpu-node-pools", "google_container_node_pool").values()
    for vm in resources(stack, "google_tpu_v2_vm").values():
        assert vm["timeouts"] == nodes["timeouts"]


def test_a_member_logs_in_without_leave_to_change_the_vm(stack: dict[str, Any]) -> None:
    """`gcloud compute tpus tpu-vm ssh` would write a key into the metadata of the VM, whose script runs as root."""
    assert not any("tpu-vm ssh" in output["value"] for output in stack["output"].values())
    words = shlex.split(stack["output"]["ssh_lab"]["value"])
    (tunnel,) = (word for word in words if word.startswith("ProxyCommand="))
    assert shlex.split(tunnel.removeprefix("ProxyCommand=")) == [
        *("gcloud", "compute", "start-iap-tunnel", "%h", "22", "--listen-on-stdin"),
        *("--zone=us-east5-b", "--project=my-project"),
    ]
    user, host = words[-1].split("@")
    assert user == "$(gcloud compute os-login describe-profile --format='value(posixAccounts[0].username)')"
    assert host.startswith("$(gcloud compute tpus tpu-vm get-guest-attributes tpu-lab ") and "worker_id=0" in host


def test_the_command_to_log_in_is_one_that_a_shell_reads(stack: dict[str, Any], tmp_path: Path) -> None:
    for name, text in {
        "gcloud": 'case "$3" in describe-profile) echo alice;; *) echo t1v-n-4711-w-0;; esac',
        "ssh": 'for word in "$@"; do echo "$word"; done',
    }.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-c", stack["output"]["ssh_lab"]["value"]],
        env={"PATH": f"{tmp_path}:/bin:/usr/bin", "HOME": "/home/alice"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        *("-i", "/home/alice/.ssh/google_compute_engine", "-o"),
        "ProxyCommand=gcloud compute start-iap-tunnel %h 22 --listen-on-stdin --zone=us-east5-b --project=my-project",
        "alice@t1v-n-4711-w-0",
    ]


def test_nobody_may_change_a_tpu_vm(stack: dict[str, Any]) -> None:
    """Who changes its metadata changes the start-up script, which runs as root."""
    granted = {grant["role"] for type_, of in stack["resource"].items() if "iam" in type_ for grant in of.values()}
    assert not granted & {"roles/tpu.admin", "roles/editor", "roles/owner"}
