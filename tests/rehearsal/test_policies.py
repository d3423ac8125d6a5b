"""What the fake API server refuses in the namespaces of teams, where a policy is bound."""

from __future__ import annotations

from typing import Any

import pytest

from rehearsal.kubernetes.api import Api
from rehearsal.kubernetes.resources import NAMESPACE
from rehearsal.kubernetes.status import Status
from tests.admission_cases import RuleCase, rule_cases
from tests.rehearsal.deployed import api_of
from tests.rehearsal.fake import FakeCloud
from tests.rehearsal.job_sets import job_set
from vocabulary.team_rules import RULES

TEAM = "tpu-training"
CODES = {rule.code for rule in RULES}
OF_TEAMS = [case for case in rule_cases() if case.code in CODES]


@pytest.fixture
def api(deployed: FakeCloud) -> Api:
    return api_of(deployed)


def of_team(kind: str, api_version: str = "v1", **more: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "namespace": TEAM}, **more}


@pytest.mark.parametrize("case", OF_TEAMS, ids=str)
def test_it_refuses_what_check_says_that_it_refuses(case: RuleCase, api: Api) -> None:
    manifest = case.manifest()
    manifest["metadata"]["namespace"] = TEAM
    with pytest.raises(Status, match=r"'jobs-of-members' with binding 'jobs-of-members' denied request") as refused:
        api.create(manifest, dry_run=True)
    assert refused.value.code == 422


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (of_team("Service", spec={"type": "NodePort"}), "opens a port to the outside"),
        (of_team("Service", spec={"type": "LoadBalancer"}), "open to the internet"),
        (
            of_team(
                "Service",
                spec={"type": "LoadBalancer", "loadBalancerClass": "networking.gke.io/l4-regional-external"},
            ),
            "the annotation networking.gke.io/load-balancer-type: Internal is enough",
        ),
        (of_team("Service", spec={"externalIPs": ["192.0.2.1"]}), "takes the traffic of others"),
        (of_team("Secret", type="kubernetes.io/service-account-token"), "such a token never ends"),
        (
            of_team("Pod", spec={"containers": [{"name": "a", "resources": {"limits": {"google.com/tpu": "4"}}}]}),
            "must come from a job that Kueue admitted",
        ),
    ],
)
def test_it_refuses_other_kinds_too(body: dict[str, Any], words: str, api: Api) -> None:
    with pytest.raises(Status, match=words):
        api.create(body, dry_run=True)


def test_it_takes_their_honest_twins(api: Api) -> None:
    internal = of_team("Service", spec={"type": "LoadBalancer"})
    internal["metadata"]["annotations"] = {"networking.gke.io/load-balancer-type": "Internal"}
    for body in (job_set(), internal, of_team("Service", spec={}), of_team("Secret", type="Opaque")):
        api.create(body, dry_run=True)


def test_a_namespace_of_no_team_takes_it(api: Api) -> None:
    service = of_team("Service", spec={"type": "NodePort"})
    service["metadata"]["namespace"] = "default"
    api.create(service, dry_run=True)


def test_with_host_access_pods_with_chips_may_be_privileged_and_no_others(api: Api) -> None:
    namespace = api.get(NAMESPACE, "", TEAM)
    namespace["metadata"]["labels"]["tpuenv/host-access"] = "true"
    api.store(namespace)
    manifest = job_set()
    pod = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pod |= {"hostNetwork": True}
    pod["containers"][0]["securityContext"] = {"privileged": True}
    api.create(manifest, dry_run=True)
    pod["hostPID"] = True
    with pytest.raises(Status, match="hostPID"):
        api.create(manifest, dry_run=True)
    del pod["hostPID"], pod["containers"][0]["resources"]
    with pytest.raises(Status, match="hostNetwork"):
        api.create(manifest, dry_run=True)


def test_images_begin_with_what_the_namespace_says(api: Api) -> None:
    namespace = api.get(NAMESPACE, "", TEAM)
    namespace["metadata"]["annotations"] = {"tpuenv/allowed-images": "gke.gcr.io/,gcr.io/a/"}
    api.store(namespace)
    manifest = job_set()
    container = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]
    with pytest.raises(Status, match=r"image: is 'x': ALLOWED_IMAGES has no beginning of it"):
        api.create(manifest, dry_run=True)
    container["image"] = "gcr.io/a/x"
    api.create(manifest, dry_run=True)
