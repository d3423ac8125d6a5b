"""`tpuenv bootstrap`, with Google's real clients, against a local server that answers as Google's REST APIs do."""

from __future__ import annotations

import copy
import os
import re
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import environment
from environment.services import PREFLIGHT_SERVICES, SERVICES
from tests.google_replies import (
    NUMBER,
    PROJECT,
    Fault,
    Google,
    bucket,
    error,
    no_access,
    older_error,
    served,
    switched_off,
)
from tpuenv.commands.bootstrap import prepare_project
from tpuenv.failure import Failed
from tpuenv.google.clients import Clients, Patience

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # of the end of support for older Pythons
    from google.auth.credentials import AnonymousCredentials
    from google.auth.transport.requests import AuthorizedSession
    from google.cloud.service_usage_v1 import ServiceUsageClient
    from google.cloud.service_usage_v1.services.service_usage.transports import ServiceUsageRestTransport
    from google.cloud.storage import Client as StorageClient

ROOT = Path(__file__).parent.parent.parent
EVERY_API = {*SERVICES, *PREFLIGHT_SERVICES}
STATE = f"{PROJECT}-tpu-tf-state"


@dataclass(frozen=True, kw_only=True)
class Bootstrap:
    """Runs the command for the fake project; gives what it printed."""

    google: Google
    folder: Path

    def __call__(
        self,
        *,
        dry_run: bool = False,
        new_bucket: bool = False,
        patience: Patience | None = None,
        url: str = "",
        **settings: str,
    ) -> str:
        vars_env = self.folder / "vars.env"
        vars_env.write_text("".join(f"{key}={value}\n" for key, value in {"PROJECT_ID": PROJECT, **settings}.items()))
        said: list[str] = []
        base = url or self.google.url
        credentials = AnonymousCredentials()
        transport = ServiceUsageRestTransport(credentials=credentials, host=base)
        storage = StorageClient(project=PROJECT, credentials=credentials, client_options={"api_endpoint": base})
        session = AuthorizedSession(credentials)
        clients = Clients(
            project_id=PROJECT,
            principal="",
            services=lambda: ServiceUsageClient(transport=transport),
            storage=storage,
            session=session,
            say=said.append,
            patience=patience or Patience(poll=0.01, line=0.02),
            api_url=lambda name: f"{base}/api/{name}",
        )
        try:
            prepare_project(environment.load(vars_env, {}), clients, dry_run=dry_run, new_bucket=new_bucket)
        finally:
            transport.close()
            transport.operations_client.transport._session.close()  # type: ignore[attr-defined]
            storage.close()
            session.close()
        return "\n".join(said)


@pytest.fixture
def google() -> Iterator[Google]:
    with served(Google()) as google:
        yield google


@pytest.fixture
def run(google: Google, tmp_path: Path) -> Bootstrap:
    return Bootstrap(google=google, folder=tmp_path)


def refused(run: Callable[..., str], **settings: str) -> str:
    with pytest.raises(Failed) as failed:
        run(**settings)
    return str(failed.value)


def good_bucket() -> dict[str, object]:
    return bucket(
        STATE,
        location="us-east5",
        versioning={"enabled": True},
        iamConfiguration={"uniformBucketLevelAccess": {"enabled": True}, "publicAccessPrevention": "enforced"},
        lifecycle={"rule": [{"action": {"type": "Delete"}, "condition": {"numNewerVersions": 5}}]},
        labels={"environment": "theirs", "stack": "bootstrap"},
    )


def test_a_fresh_project_gets_every_api_and_the_state_bucket(google: Google, run: Bootstrap) -> None:
    said = run()
    assert google.enabled == EVERY_API
    made = google.buckets[STATE]
    assert made["location"] == "US-EAST5"
    assert made["versioning"] == {"enabled": True}
    assert made["iamConfiguration"]["uniformBucketLevelAccess"]["enabled"] is True
    assert made["iamConfiguration"]["publicAccessPrevention"] == "enforced"
    assert made["labels"] == {"environment": "tpu", "stack": "bootstrap"}
    (rule,) = made["lifecycle"]["rule"]
    assert rule["action"] == {"type": "Delete"}
    assert set(rule["condition"]) == {"numNewerVersions", "daysSinceNoncurrentTime"}  # so never the live version
    assert f"Enabled {len(EVERY_API) - 2} APIs" in said
    assert f"Created bucket {STATE} in us-east5" in said
    assert said.splitlines()[-1].startswith("Next: tpuenv deploy")


def test_a_second_run_changes_nothing_and_says_so(google: Google, run: Bootstrap) -> None:
    run()
    before, google.requests = copy.deepcopy(google.buckets), []
    said = run()
    assert google.changes == []
    assert google.buckets == before
    assert "All APIs are enabled and answer" in said
    assert "Nothing had to be changed." in said


def test_a_dry_run_prints_and_changes_nothing(google: Google, run: Bootstrap) -> None:
    said = run(dry_run=True)
    assert google.changes == []
    assert "would enable container.googleapis.com: the GKE cluster and its node pools" in said
    assert f"would have created bucket {STATE} in us-east5" in said


def test_a_dry_run_prints_what_it_would_correct(google: Google, run: Bootstrap) -> None:
    google.buckets[STATE] = bucket(STATE, location="us-east5")
    assert f"would have turned on versioning of bucket {STATE}" in run(dry_run=True)
    assert google.changes == []


def test_a_dry_run_works_while_even_the_storage_api_is_off(google: Google, run: Bootstrap) -> None:
    google.enabled.remove("storage.googleapis.com")
    google.faults.append(Fault(request="/storage/v1/", status=403, body=switched_off("storage.googleapis.com")))
    assert f"would have created bucket {STATE}" in run(dry_run=True)


def test_the_bucket_and_region_of_the_settings_are_used(google: Google, run: Bootstrap) -> None:
    run(TF_STATE_BUCKET="the-state-of-things", REGION="europe-west4", ZONE="europe-west4-a", RESOURCE_PREFIX="lab")
    assert google.buckets["the-state-of-things"]["location"] == "EUROPE-WEST4"
    assert google.buckets["the-state-of-things"]["labels"]["environment"] == "lab"


def test_a_bucket_changed_by_hand_is_corrected_and_reported(google: Google, run: Bootstrap) -> None:
    google.buckets[STATE] = bucket(STATE, location="us-east5", labels={"cost-center": "7"})
    said = run()
    put_right = google.buckets[STATE]
    assert put_right["versioning"] == {"enabled": True}
    assert put_right["iamConfiguration"]["uniformBucketLevelAccess"]["enabled"] is True
    assert put_right["iamConfiguration"]["publicAccessPrevention"] == "enforced"
    assert put_right["labels"] == {"cost-center": "7", "environment": "tpu", "stack": "bootstrap"}
    assert f"Turned on versioning of bucket {STATE}" in said
    assert f"Turned on uniform bucket-level access of bucket {STATE}" in said
    google.requests = []
    run()
    assert google.changes == []


def test_rules_and_labels_that_somebody_chose_stay(google: Google, run: Bootstrap) -> None:
    google.enabled = set(EVERY_API)
    google.buckets[STATE] = good_bucket()
    assert f"Bucket {STATE} is as it should be" in run()
    assert google.changes == []


def test_only_what_is_wrong_is_changed(google: Google, run: Bootstrap) -> None:
    google.buckets[STATE] = good_bucket() | {"versioning": {"enabled": False}}
    said = run()
    assert [line for line in said.splitlines() if STATE in line] == [f"Turned on versioning of bucket {STATE}"]


def test_a_bucket_elsewhere_is_noted_and_kept(google: Google, run: Bootstrap) -> None:
    google.buckets[STATE] = good_bucket() | {"location": "EU"}
    assert "is in EU, not in REGION us-east5" in run()
    assert google.buckets[STATE]["location"] == "EU"


@pytest.mark.parametrize("hidden", [True, False], ids=["that we may not read", "that we may read"])
def test_a_bucket_of_another_project_is_refused_and_left_alone(google: Google, run: Bootstrap, hidden: bool) -> None:
    theirs = bucket(STATE, project_number="999999999999")
    google.buckets[STATE] = copy.deepcopy(theirs)
    google.hidden = {STATE} if hidden else set()
    assert refused(run).startswith(f"TF_STATE_BUCKET: '{STATE}' belongs to another project")
    assert google.buckets[STATE] == theirs


def test_an_own_bucket_that_may_not_be_read_is_a_missing_permission(google: Google, run: Bootstrap) -> None:
    google.buckets[STATE] = good_bucket()
    google.hidden = {STATE}
    message = refused(run)
    assert "needs storage.buckets.get" in message
    assert "another project" not in message


def test_a_name_that_is_taken_between_the_check_and_the_creation_is_refused(google: Google, run: Bootstrap) -> None:
    google.faults += [
        Fault(request="GET /storage/v1/b/", status=404, body=older_error(404, "notFound", "no"), times=1),
    ]
    google.buckets[STATE] = bucket(STATE, project_number="999999999999")
    assert refused(run).startswith(f"TF_STATE_BUCKET: '{STATE}' belongs to another project")


def test_a_bucket_whose_making_was_answered_too_late_is_taken_as_ours(google: Google, run: Bootstrap) -> None:
    google.faults += [
        Fault(request="GET /storage/v1/b/", status=404, body=older_error(404, "notFound", "no"), times=1),
    ]
    google.buckets[STATE] = good_bucket()
    assert f"Bucket {STATE} is as it should be" in run()


def test_a_deleted_state_bucket_is_not_replaced_as_long_as_it_can_be_restored(google: Google, run: Bootstrap) -> None:
    times = {"softDeleteTime": "2030-01-02T03:04:05.678Z", "hardDeleteTime": "2030-01-09T03:04:05.678Z"}
    google.deleted = [
        good_bucket() | {"generation": "41"},
        good_bucket() | {"generation": "42"} | times,
        bucket(f"{STATE}-2", generation="43"),
    ]
    for dry_run in (True, False):
        with pytest.raises(Failed) as failed:
            run(dry_run=dry_run)
        assert str(failed.value) == (
            f"TF_STATE_BUCKET: '{STATE}' was deleted 2030-01-02 03:04 UTC, and Google has it with all states until "
            f"2030-01-09 03:04 UTC; restore it:\n  gcloud storage restore gs://{STATE}#42\n"
            "To have an empty one instead, and lose those states for good: tpuenv bootstrap --new-bucket"
        )
    assert google.buckets == {}
    assert f"Created bucket {STATE}" in run(new_bucket=True)


def test_what_another_deleted_bucket_was_called_does_not_matter(google: Google, run: Bootstrap) -> None:
    google.deleted = [bucket(f"{STATE}-2", generation="43")]
    assert f"Created bucket {STATE}" in run()


@pytest.mark.parametrize("dry_run", [True, False])
def test_without_an_open_billing_account_or_a_permission_it_stops_before_it_changes_anything(
    google: Google, run: Bootstrap, dry_run: bool
) -> None:
    google.enabled = {*EVERY_API} - {"compute.googleapis.com"}
    google.billing, google.lacking = False, {"storage.buckets.create", "serviceusage.services.enable"}
    with pytest.raises(Failed) as failed:
        run(dry_run=dry_run)
    assert str(failed.value) == (
        "billing account: 0-1-2 is closed; needed is one that is open:\n"
        f"  gcloud billing projects link {PROJECT} --billing-account=ACCOUNT    # gcloud billing accounts list\n"
        "serviceusage.serviceUsageAdmin: without serviceusage.services.enable; needed is 3 permissions:\n"
        f"  gcloud projects add-iam-policy-binding {PROJECT} --member=user:YOUR_EMAIL "
        "--role=roles/serviceusage.serviceUsageAdmin\n"
        "storage.admin: without storage.buckets.create; needed is 4 permissions:\n"
        f"  gcloud projects add-iam-policy-binding {PROJECT} --member=user:YOUR_EMAIL --role=roles/storage.admin"
    )
    assert google.changes == []


def test_a_missing_permission_to_enable_is_named_with_its_role(google: Google, run: Bootstrap) -> None:
    body = error(403, "PERMISSION_DENIED", "Permission denied to enable service [compute.googleapis.com]",
                 reason="AUTH_PERMISSION_DENIED")  # fmt: skip
    google.faults.append(Fault(request=":batchEnable", status=403, body=body))
    message = refused(run)
    assert "may not enable APIs in project 'my-project': it needs serviceusage.services.enable" in message
    assert "gcloud projects add-iam-policy-binding my-project" in message
    assert "--role=roles/serviceusage.serviceUsageAdmin" in message
    assert "Google says: Permission denied to enable service [compute.googleapis.com]" in message


def test_a_missing_permission_to_make_the_bucket_names_who_lacks_it(google: Google, run: Bootstrap) -> None:
    body = no_access("storage.buckets.create", "Google Cloud project")
    google.faults.append(Fault(request="POST /storage", status=403, body=body))
    message = refused(run)
    assert "ada@example.com may not create bucket" in message
    assert "it needs storage.buckets.create" in message
    assert "--member=user:ada@example.com --role=roles/storage.admin" in message


def test_a_project_without_billing_is_reported_where_to_link_it(google: Google, run: Bootstrap) -> None:
    text = "Billing account for project '123456789012' is not found. Billing must be enabled to proceed."
    body = error(400, "FAILED_PRECONDITION", text, reason="UREQ_PROJECT_BILLING_NOT_FOUND", project=NUMBER)
    google.faults.append(Fault(request=":batchEnable", status=400, body=body))
    message = refused(run)
    assert message.startswith("PROJECT_ID: 'my-project' has no open billing account")
    assert "https://console.cloud.google.com/billing/linkedaccount?project=my-project" in message


def test_billing_refused_by_the_operation_itself_is_reported_too(google: Google, run: Bootstrap) -> None:
    google.operation_error = {"code": 9, "message": "Billing account for project '123456789012' is not open."}
    assert refused(run).startswith("PROJECT_ID: 'my-project' has no open billing account")


def test_a_closed_billing_account_that_cloud_storage_refuses_is_reported_too(google: Google, run: Bootstrap) -> None:
    body = older_error(403, "accountDisabled", "The billing account for the owning project is disabled in state closed")
    google.faults.append(Fault(request="POST /storage", status=403, body=body))
    assert "has no open billing account" in refused(run)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (403, error(403, "PERMISSION_DENIED", "Project 'my-project' not found or permission denied.")),
        (403, error(403, "PERMISSION_DENIED", "Permission denied on resource project my-project.",
                    reason="CONSUMER_INVALID")),
        (403, error(403, "PERMISSION_DENIED", "Caller does not have required permission to use project my-project.",
                    reason="USER_PROJECT_DENIED")),
        (403, error(403, "PERMISSION_DENIED", "Project my-project has been deleted.")),
    ],
)  # fmt: skip
def test_a_project_that_is_not_there_or_not_ours_is_reported(
    google: Google, run: Bootstrap, status: int, body: dict[str, object]
) -> None:
    google.faults.append(Fault(request="/v1/projects/", status=status, body=body))
    assert refused(run).startswith("PROJECT_ID: 'my-project' does not exist, or your account may not use it")


def test_a_wrong_project_number_is_refused_before_anything_is_changed(google: Google, run: Bootstrap) -> None:
    message = refused(run, PROJECT_NUMBER="99999")
    assert message.startswith(f"PROJECT_NUMBER: '99999' is not the number of project 'my-project', which is {NUMBER}")
    assert google.changes == []


def test_the_api_that_enables_the_others_being_off_is_reported(google: Google, run: Bootstrap) -> None:
    body = switched_off("serviceusage.googleapis.com")
    google.faults.append(Fault(request=":batchGet", status=403, body=body))
    assert "gcloud services enable serviceusage.googleapis.com --project=my-project" in refused(run)


def test_it_waits_until_the_apis_answer(google: Google, run: Bootstrap) -> None:
    google.looks_until_enabled, google.lists_until_shown, google.asks_until_it_answers = 4, 4, 4
    said = run()
    assert "not yet enabled: " in said
    assert "not yet answered for: " in said
    assert f"Enabled {len(EVERY_API) - 2} APIs; all of them answer" in said
    assert google.lists_until_shown == 0
    asked = [request for request in google.requests if "/api/compute.googleapis.com/" in request]
    assert len(asked) == 5


def test_an_api_that_never_answers_ends_with_its_name(google: Google, run: Bootstrap) -> None:
    google.asks_until_it_answers = 1_000_000
    message = refused(run, patience=Patience(poll=0.01, change=0.2))
    answered = r"APIs: after \d+ s Google still has not answered for cloudresourcemanager\.googleapis\.com, "
    assert re.match(answered, message)
    assert "run this again: what is done stays done" in message


def test_an_operation_that_never_ends_is_given_up(google: Google, run: Bootstrap) -> None:
    google.looks_until_enabled = 1_000_000
    message = refused(run, patience=Patience(poll=0.01, change=0.2))
    assert "Google still has not enabled cloudresourcemanager.googleapis.com, " in message


@pytest.mark.parametrize(
    "request_",
    [":batchGet", ":batchEnable", "/operations/", "/api/compute", "GET /storage/v1/b/", "POST /storage"],
)
@pytest.mark.parametrize("status", [429, 503])
def test_a_fault_that_passes_is_tried_again(google: Google, run: Bootstrap, request_: str, status: int) -> None:
    google.faults.append(Fault(request=request_, status=status, body=error(status, "UNAVAILABLE", "later"), times=2))
    assert "The project is ready." in run()
    assert google.faults[0].times == 0


def test_a_fault_that_stays_is_reported(google: Google, run: Bootstrap) -> None:
    google.faults.append(Fault(request=":batchGet", status=503, body=error(503, "UNAVAILABLE", "Try later.")))
    message = refused(run, patience=Patience(again=0.2, poll=0.01))
    assert message == "Google would not read which APIs are enabled in project 'my-project': 503: Try later."


def test_no_network_is_reported_within_the_time_of_one_answer(run: Bootstrap) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        message = refused(run, url=url, patience=Patience(again=0.3, poll=0.01))
    assert message.startswith("network: no answer within 0 s: 127.0.0.1, NewConnectionError; check the connection")


def test_refused_credentials_are_reported(google: Google, run: Bootstrap) -> None:
    body = error(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.")
    google.faults.append(Fault(request=":batchGet", status=401, body=body))
    assert "run `gcloud auth application-default login`" in refused(run)


def test_an_unexpected_refusal_is_passed_on_in_googles_words(google: Google, run: Bootstrap) -> None:
    body = older_error(412, "conditionNotMet", "'us-east5' violates constraint 'constraints/gcp.resourceLocations'")
    google.faults.append(Fault(request="POST /storage", status=412, body=body))
    message = refused(run)
    assert message.startswith(
        f"Google would not create bucket {STATE} in project 'my-project': 412: 'us-east5' violates"
    )


def test_more_apis_than_one_request_takes_go_in_several(google: Google, run: Bootstrap) -> None:
    many = {f"service-{number}.googleapis.com": "is needed" for number in range(45)}
    from tpuenv.google import apis

    google.enabled = set(EVERY_API)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apis, "SERVICES", {**SERVICES, **many})
        run()
    assert google.enabled == {*EVERY_API, *many}
    assert sum(request.endswith(":batchEnable") for request in google.requests) == 3


def in_a_shell(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    nobody = {"HOME": str(folder), "CLOUDSDK_CONFIG": str(folder), "NO_GCE_CHECK": "true"}
    own = {key: value for key, value in os.environ.items() if not key.startswith(("GOOGLE_", "CLOUDSDK_", "GCLOUD_"))}
    return subprocess.run(
        [sys.executable, "-m", "tpuenv", "bootstrap", *arguments],
        cwd=ROOT, env=own | nobody | variables, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("variables", [{}, {"GOOGLE_APPLICATION_CREDENTIALS": "/not/there.json"}])
def test_no_credentials_is_one_line_and_no_traceback(tmp_path: Path, variables: dict[str, str]) -> None:
    done = in_a_shell(tmp_path, PROJECT_ID="some-project", **variables)
    assert done.returncode == 1
    assert done.stderr.startswith("credentials: none that can be used on this machine")
    assert "run `gcloud auth application-default login`" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_wrong_settings_are_refused_before_google_is_asked(tmp_path: Path) -> None:
    done = in_a_shell(tmp_path, PROJECT_ID=PROJECT, TPU_TYPE="v6e-17")
    assert done.returncode == 2
    assert done.stderr.startswith("TPU_TYPE: ")
