"""Terraform's messages explained: real ones, as Terraform 1.11 and cdktf 0.21 print them, and Terraform itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tpuenv.terraform.errors import explain


def in_cdktf(stack: str, *lines: str) -> str:
    """An error in a box, coloured and indented as cdktf prints it, between two redraws of its progress."""
    indent = " " * (len(stack) + 2)
    bar = f"{indent}\x1b[31m│\x1b[0m \x1b[0m"
    redraw = "\n\n1 Stack destroying     0 Stacks done     1 Stack waiting\n\x1b[2K\x1b[1A\x1b[2K\x1b[1A\x1b[2K\x1b[G"
    head = f"{stack}  \x1b[31m╷\x1b[0m\x1b[0m\n{bar}\x1b[1m\x1b[31mError: \x1b[0m\x1b[0m\x1b[1m{lines[0]}\x1b[0m\n"
    body = "".join(f"{bar}{line}\n" for line in ("", *lines[1:]))
    return f"{redraw}{head}{body}{indent}\x1b[31m╵\x1b[0m\x1b[0m\n{redraw}"


def protected(stack: str, address: str) -> str:
    return in_cdktf(
        stack,
        "Instance cannot be destroyed",
        f"\x1b[0m  on cdk.tf.json line 13, in resource.{address.split('.')[0]}:",
        '\x1b[0m  13:       "guard": \x1b[4m{\x1b[0m\x1b[0m',
        "",
        f"Resource {address} ({address.split('.')[1]}) has lifecycle.prevent_destroy set, but the plan",
        "calls for this resource to be destroyed. To avoid this error and continue",
        "with the plan, either disable lifecycle.prevent_destroy or reduce the scope",
        "of the plan using the -target option.",
    )


LOCK = (
    "Lock Info:",
    "  ID:        1732111111111111",
    "  Path:      gs://my-project-tpu-tf-state/tpu/cluster/default.tflock",
    "  Operation: OperationTypeApply",
    "  Who:       ada@laptop",
    "  Version:   1.11.4",
    "  Created:   2030-01-02 03:04:05.6 +0000 UTC",
    "  Info:      ",
    "",
)
HELD = (
    'writing "gs://my-project-tpu-tf-state/tpu/cluster/default.tflock" failed: googleapi: Error 412: At least one of '
    "the pre-conditions you specified did not hold., conditionNotMet"
)


@pytest.mark.parametrize(
    "error",
    [
        "Unauthorized",
        "Kubernetes cluster unreachable: the server has asked for the client to provide credentials",
    ],
)
def test_a_login_that_the_cluster_does_not_accept_is_explained(error: str) -> None:
    explanation = explain(in_cdktf("platform", error, "\x1b[0m  with helm_release.kueue,"))
    assert explanation.startswith("The cluster does not accept the login of this machine.")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("exec: executable tpuenv not found", "source .venv/bin/activate"),
        ("exec: executable tpuenv failed with exit code 1", "tpuenv token >/dev/null"),
    ],
)
def test_a_token_that_could_not_be_had_is_explained(error: str, words: str) -> None:
    assert words in explain(in_cdktf("platform", f'Get "https://x/api": getting credentials: {error}'))


def test_output_without_a_known_error_is_not_explained() -> None:
    assert explain("") == ""
    assert explain("cluster  Apply complete! Resources: 3 added, 0 changed, 0 destroyed.") == ""
    assert (
        explain(in_cdktf("cluster", "Error creating NodePool: googleapi: Error 400: bad topology., badRequest")) == ""
    )


def test_a_protected_stack_says_which_setting_lifts_it() -> None:
    explanation = explain(protected("cluster", "terraform_data.guard"))
    assert "terraform_data.guard" in explanation
    assert "  DELETION_PROTECTION=false tpuenv destroy\n" in explanation
    assert "DESTROY_DATA" not in explanation


@pytest.mark.parametrize(
    ("address", "lost"),
    [
        ("google_storage_bucket.bucket-tpu-training", "the bucket's objects"),
        ("google_artifact_registry_repository.registry", "the images"),
        ("google_vertex_ai_tensorboard.tensorboard", "the experiments"),
    ],
)
def test_protected_data_needs_the_second_setting_and_says_what_is_lost(address: str, lost: str) -> None:
    explanation = explain(protected("foundation", address))
    assert "DELETION_PROTECTION=false DESTROY_DATA=true tpuenv destroy" in explanation
    assert f"deletes {lost} for good" in explanation


@pytest.mark.parametrize("address", ["google_compute_network.network", "google_compute_subnetwork.subnet"])
def test_a_protected_network_names_the_settings_that_would_replace_it(address: str) -> None:
    explanation = explain(protected("foundation", address))
    assert f"  {address}: protected until DELETION_PROTECTION=false\n" in explanation
    assert "REGION or a range (SUBNET_CIDR, PODS_CIDR, SERVICES_CIDR): set it back" in explanation
    assert "DESTROY_DATA" not in explanation


def test_a_network_in_use_says_what_uses_it_and_which_settings_to_put_back() -> None:
    subnet = "projects/my-project/regions/us-east5/subnetworks/tpu-subnet"
    cluster = "projects/my-project/zones/us-east5-b/instances/gke-tpu-cluster-cpu-1"
    explanation = explain(
        in_cdktf(
            "foundation",
            f"Error when reading or editing Subnetwork: googleapi: Error 400: The subnetwork resource '{subnet}' is "
            f"already being used by '{cluster}', resourceInUseByAnotherResource",
        )
    )
    assert explanation.startswith(f"In use: {subnet} is used by {cluster}.")
    assert "SUBNET_CIDR, PODS_CIDR, SERVICES_CIDR): set it back" in explanation


@pytest.mark.parametrize(
    "words",
    [
        "Node count 8 is not a valid size of TPU pod slice with topology 4x4; it must be 4.",
        "Machine type of a TPU node pool cannot be updated from ct6e-standard-4t to ct5p-hightpu-4t.",
        "Google Compute Engine: Invalid value for field 'resource.resizeBy': '8'. Requested invalid target size '8' "
        "for a Managed Instance Group in the gang mode of size '4'. Should be equal to the gang size.",
    ],
)
def test_a_slice_that_cannot_become_another_says_what_replaces_it(words: str) -> None:
    line = f"Error updating NodePool: googleapi: Error 400: {words}, badRequest"
    explanation = explain(in_cdktf("tpu-node-pools", line, "", "with google_container_node_pool.tpu-0,"))
    assert explanation.endswith("tpu-node-pools apply -replace=google_container_node_pool.tpu-0")
    assert explain(in_cdktf("tpu-node-pools", line.replace("updating", "creating"))) == ""


@pytest.mark.parametrize(
    "line",
    [
        "Error creating Network: googleapi: Error 409: The resource 'projects/p/global/networks/n' already exists, "
        "alreadyExists",
        "googleapi: Error 409: Your previous request to create the named bucket succeeded and you already own it., "
        "conflict",
        "Error creating service account: googleapi: Error 409: Service account tpu-nodes already exists within project "
        "projects/p., alreadyExists",
        "Error creating Repository: googleapi: Error 409: the repository already exists",
        "googleapi: Error 409: Already exists: projects/p/locations/us-east5/clusters/tpu-cluster already exists.",
        "Cannot create resource that already exists",
    ],
)
def test_what_exists_but_is_not_in_the_state_can_be_recovered(line: str) -> None:
    other = in_cdktf("foundation", "Error creating Router: googleapi: Error 400: no., invalid", "  with a_router.b,")
    explanation = explain(in_cdktf("foundation", line, "", "  with a_kind.a-name,", "  on cdk.tf.json line 9") + other)
    assert explanation.startswith("Exists already: a_kind.a-name exists but is not in the state")
    assert explanation.endswith("\n  tpuenv recover")


def test_an_error_beside_one_of_a_conflict_is_not_taken_for_it() -> None:
    line = "Error creating Bucket: googleapi: Error 409: The requested bucket name is not available., conflict"
    assert explain(in_cdktf("foundation", line) + in_cdktf("foundation", "the state already exists")) == ""


def test_several_protected_resources_are_reported_once_each() -> None:
    guard = protected("foundation", "terraform_data.guard")
    registry = protected("foundation", "google_artifact_registry_repository.registry")
    explanation = explain(guard + registry + guard)
    assert "  terraform_data.guard: protected until DELETION_PROTECTION=false\n" in explanation
    assert (
        "  google_artifact_registry_repository.registry: protected until DELETION_PROTECTION=false DESTROY_DATA"
        in explanation
    )
    assert explanation.count("tpuenv destroy") == 1


@pytest.mark.parametrize(
    "lines",
    [("Error acquiring the state lock", "", f"Error message: {HELD}", *LOCK), (f"Error loading state: {HELD}", *LOCK)],
    ids=["a lock wanted by an apply", "a lock wanted for a new state"],
)
def test_a_held_lock_says_who_since_when_and_how_to_free_it(lines: tuple[str, ...]) -> None:
    explanation = explain(in_cdktf("cluster", *lines) + in_cdktf("cluster", *lines).replace("\n", "\r\n"))
    assert "the state of cluster is held by ada@laptop since 2030-01-02 03:04:05.6 +0000 UTC" in explanation
    assert explanation.count("terraform -chdir=cdktf.out/stacks/cluster force-unlock 1732111111111111") == 1
    assert "\n  tpuenv recover\n" in explanation


def test_a_missing_state_bucket_needs_the_bootstrap() -> None:
    line = "Failed to get existing workspaces: querying Cloud Storage failed: storage: bucket doesn't exist"
    explanation = explain(in_cdktf("foundation", line))
    assert explanation.startswith("No state bucket")
    assert explanation.index("gcloud storage restore gs://BUCKET#GENERATION") < explanation.index("tpuenv bootstrap")
    assert "Only in a project that never had one" in explanation


def test_an_imported_cluster_that_the_provider_does_not_delete_needs_a_deploy() -> None:
    line = "Cannot destroy cluster because deletion_protection is set to true. Set it to false to proceed with cluster "
    explanation = explain(in_cdktf("cluster", line, "deletion."))
    assert explanation.endswith("\n  DELETION_PROTECTION=false tpuenv deploy foundation cluster")


def test_a_terraform_that_was_killed_needs_the_recovery() -> None:
    explanation = explain("[ERROR] default - Invoking Terraform CLI failed with exit code 137\n")
    assert explanation.startswith("Killed: ")
    assert explanation.endswith("\n  tpuenv recover")
    assert explain("Invoking Terraform CLI failed with exit code 1\n") == ""


@pytest.mark.parametrize(
    ("line", "which"),
    [
        (
            "Error creating Network: googleapi: Error 403: Compute Engine API has not been used in project 123 before "
            "or it is disabled. Enable it by visiting https://console.developers.google.com., SERVICE_DISABLED",
            "Compute Engine API",
        ),
        ("Error reading Repository: googleapi: Error 403: no., accessNotConfigured", "one that this environment uses"),
    ],
)
def test_an_api_that_is_off_needs_the_bootstrap(line: str, which: str) -> None:
    explanation = explain(in_cdktf("foundation", line))
    assert explanation.startswith(f"Google API not enabled: {which}.")
    assert "tpuenv bootstrap" in explanation


@pytest.mark.parametrize(
    "line",
    [
        "storage.NewClient() failed: dialing: google: could not find default credentials.",
        "Attempted to load application default credentials since neither `credentials` nor `access_token` was set "
        "in the provider block.  No credentials loaded.",
        'Get "https://compute.googleapis.com": oauth2: "invalid_grant" "reauth related error (invalid_rapt)"',
    ],
)
def test_missing_or_expired_credentials_need_a_login(line: str) -> None:
    explanation = explain(in_cdktf("foundation", line))
    assert "gcloud auth application-default login" in explanation


def test_two_different_errors_are_both_explained() -> None:
    explanation = explain(protected("queues", "terraform_data.guard") + in_cdktf("cluster", "Error acquiring", *LOCK))
    assert "DELETION_PROTECTION=false" in explanation
    assert "force-unlock" in explanation


# --- Terraform itself, which needs no provider for its own `terraform_data` ---


def terraform(folder: Path, *arguments: str) -> str:
    here = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    program = shutil.which("terraform", path=here) or shutil.which("tofu", path=here)
    if program is None:
        pytest.skip("there is no Terraform on the PATH")
    settings = {"CHECKPOINT_DISABLE": "1", "TF_CLI_CONFIG_FILE": os.devnull}
    done = subprocess.run([program, *arguments], cwd=folder, env=os.environ | settings, capture_output=True, text=True)
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("guarded")
    guard = {"guard": {"input": {"stack": "cluster"}, "lifecycle": {"prevent_destroy": True}}}
    (folder / "cdk.tf.json").write_text(json.dumps({"resource": {"terraform_data": guard}}))
    terraform(folder, "init")
    assert "Apply complete!" in terraform(folder, "apply", "-auto-approve")
    return folder


def test_the_refusal_of_the_real_terraform_is_recognised(guarded: Path) -> None:
    explanation = explain(terraform(guarded, "destroy", "-auto-approve"))
    assert "terraform_data.guard: protected until DELETION_PROTECTION=false" in explanation


def test_the_held_lock_of_the_real_terraform_is_recognised(guarded: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    lock = {"ID": "1732", "Operation": "OperationTypeApply", "Info": "", "Who": "ada@laptop", "Version": "1.11.4",
            "Created": "2030-01-02T03:04:05.6Z", "Path": "terraform.tfstate"}  # fmt: skip
    (guarded / ".terraform.tfstate.lock.info").write_text(json.dumps(lock))
    with (guarded / "terraform.tfstate").open("r+") as state:
        fcntl.lockf(state, fcntl.LOCK_EX)
        explanation = explain(terraform(guarded, "apply", "-auto-approve"))
    assert "is held by ada@laptop since 2030-01-02" in explanation
    assert "force-unlock 1732" in explanation


@pytest.mark.parametrize("state", ['{"version": 4, "ser', "{}", '{"version": 4, "resources": [{}]}'])
def test_the_damaged_state_of_the_real_terraform_is_recognised(tmp_path: Path, state: str) -> None:
    (tmp_path / "cdk.tf.json").write_text(json.dumps({"resource": {"terraform_data": {"guard": {}}}}))
    terraform(tmp_path, "init")
    (tmp_path / "terraform.tfstate").write_text(state)
    explanation = explain(terraform(tmp_path, "plan"))
    assert explanation.startswith("Damaged: Terraform cannot read the state.")
    assert explanation.endswith("\n  tpuenv recover")


@pytest.mark.parametrize("words", ["", " containing objects"])
def test_a_bucket_with_objects_is_named_with_both_ways_on(words: str) -> None:
    explanation = explain(
        in_cdktf("foundation", f"Error trying to delete bucket my-bucket{words} without `force_destroy` set to true")
    )
    assert "my-bucket" in explanation
    assert "DELETION_PROTECTION=false DESTROY_DATA=true tpuenv deploy foundation" in explanation


def test_a_gate_that_stays_closed_says_where_its_reason_is() -> None:
    explanation = explain(
        in_cdktf(
            "platform",
            "installation failed",
            "failed post-install: 1 error occurred:",
            "\t* job gate failed: BackoffLimitExceeded",
        )
    )
    assert "kubectl logs -n kueue-system job/gate" in explanation


@pytest.mark.parametrize("release", ["drain", "evict"])
def test_a_queue_that_does_not_drain_is_named(release: str) -> None:
    explanation = explain(
        in_cdktf(
            "queues",
            "Error uninstalling release",
            "failed pre-delete: 1 error occurred:",
            f"\t* job {release}-research failed: BackoffLimitExceeded",
        )
    )
    assert "ClusterQueue research" in explanation
    assert f"job/{release}-research" in explanation
