"""What a member of a team tries on a real API server is refused, what is honest starts, and of the cluster that both
leave the invariants hold.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from admission.boundary import Boundary, refusals_of
from admission.workload import KINDS, Field, templates_of
from environment import Environment
from tests.admission_cases import CASES, changed, manifest_of, rule_cases
from tests.cluster.api import ApiServer, Object, Refused, until
from tests.cluster.deployed import MEMBERS, Deployed
from tests.cluster.hosts import running
from tests.cluster.invariants import running_pods, what_is_broken
from tests.cluster.outcome import ADMITTED, PENDING, outcome_of, workload_of
from tests.yaml_files import documents
from vocabulary.keys import ADMITTED_POD_LABEL, IMAGES_ANNOTATION
from vocabulary.team_rules import FINALIZER, RAY_SIZE, RULES

pytestmark = pytest.mark.cluster

(TABLE,) = documents(Path(__file__).with_name("boundary.yaml"))
ATTACKS = [(row, of) for row in TABLE["attacks"] for of in row["of"]]
HONEST = sorted({of for _, of in ATTACKS})
NO_HOSTS = "no pod starts here: the cluster has no KWOK, which would keep the hosts of the fleet alive"


@dataclass(frozen=True, kw_only=True)
class Place:
    """A team's namespace, as a member of it; `admin` may everything. Without `hosts` no pod starts."""

    admin: ApiServer
    environment: Environment
    hosts: bool
    team: str = "research"
    made: list[Object] = field(default_factory=list)

    @property
    def member(self) -> ApiServer:
        return replace(self.admin, user=MEMBERS[self.team])

    def manifest(self, name: str, change: Object | None = None) -> Object:
        manifest = copy.deepcopy(TABLE["others"].get(name)) or manifest_of(name)
        return self.here(changed(manifest, copy.deepcopy(change or {})))

    def here(self, manifest: Object) -> Object:
        if not self.admin.serves(manifest["kind"]):
            pytest.skip(f"this cluster does not serve {manifest['kind']}: KubeRay's CRDs are not installed")
        return {**manifest, "metadata": {**manifest["metadata"], "namespace": self.team}}

    def submit(self, manifest: Object) -> Object:
        self.made.append(self.member.create(manifest))
        return self.made[-1]

    def admitted(self, manifest: Object) -> Object:
        job = self.submit(manifest)
        until("Kueue to admit it", lambda: True if self.is_admitted(job) else None)
        return job

    def is_admitted(self, job: Object) -> bool:
        outcome = outcome_of(self.admin, job)
        return outcome is not None and outcome.kind == ADMITTED

    def live(self, job: Object) -> Object:
        return self.admin.get(job["kind"], job["metadata"]["name"], self.team) or {}

    def pods_of(self, job: Object) -> int:
        """As many as Kueue has admitted; KubeRay makes that of the submitter when the cluster answers."""
        admission = (workload_of(self.admin, job) or {})["status"]["admission"]
        return sum(item["count"] for item in admission["podSetAssignments"] if item["name"] != "submitter")

    def run(self, *jobs: Object) -> None:
        if not self.hosts:
            pytest.skip(NO_HOSTS)
        pods = sum(map(self.pods_of, jobs))
        until("its pods to run", lambda: True if len(running_pods(self.admin, self.team)) == pods else None)

    def usage(self, resource: str) -> str:
        status = (self.admin.get("ClusterQueue", self.team) or {}).get("status", {})
        totals = [
            item["total"]
            for flavor in status.get("flavorsUsage", [])
            for item in flavor["resources"]
            if item["name"] == resource and item["total"] != "0"
        ]
        return " ".join(totals)

    def leave(self) -> None:
        for item in reversed(self.made):
            self.admin.delete(item)
        kinds = ("Job", "JobSet", "RayJob", "RayCluster", "Workload", "Pod")
        until("all to be gone", lambda: None if any(self.admin.list(kind, self.team) for kind in kinds) else True)


@pytest.fixture(scope="module")
def hosts(deployed: Deployed, described: Environment) -> Iterator[bool]:
    with running(deployed.api, described) as ready:
        yield ready


@pytest.fixture
def places(deployed: Deployed, described: Environment, hosts: bool) -> Iterator[dict[str, Place]]:
    """One of every team. Afterwards the invariants hold, and nothing is left."""
    by_team = {team: Place(admin=deployed.api, environment=described, hosts=hosts, team=team) for team in MEMBERS}
    try:
        yield by_team
        assert what_is_broken(deployed.api, described) == []
    finally:
        for place in by_team.values():
            place.leave()


@pytest.fixture
def place(places: dict[str, Place]) -> Place:
    return places["research"]


@pytest.mark.parametrize(("row", "of"), ATTACKS, ids=[f"{row['name']}-{of}" for row, of in ATTACKS])
def test_what_a_member_tries_is_refused(row: Object, of: str, place: Place) -> None:
    with pytest.raises(Refused, match=re.escape(row["says"])):
        if "child" in row:
            _change_of_a_child(place, place.manifest(of), row["child"])
        else:
            manifest = place.manifest(of, row.get("change"))
            if row.get("owned"):
                manifest["metadata"]["ownerReferences"] = [_owner(place)]
            place.submit(manifest)


def _owner(place: Place) -> Object:
    """An admitted job of the team, as the owner of another."""
    job = place.admitted(place.manifest("job-cpu", {"metadata": {"name": "owner"}}))
    names = {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": "owner", "uid": job["metadata"]["uid"]}
    return {**names, "controller": True}


def _change_of_a_child(place: Place, manifest: Object, child: Object) -> None:
    """The member changes what a controller has made of the member's own job."""
    uid = place.admitted(manifest)["metadata"]["uid"]

    def made() -> Object | None:
        for item in place.admin.list(child["kind"], place.team):
            if any(owner["uid"] == uid for owner in item["metadata"].get("ownerReferences", [])):
                return item
        return None

    old = until(f"its {child['kind']}", made)
    new = changed({"kind": child["kind"], **copy.deepcopy(old)}, child["change"])
    owners = {"ownerReferences": new["metadata"].get("ownerReferences")}
    place.member.merge(child["kind"], old["metadata"]["name"], {"metadata": owners, "spec": new["spec"]}, place.team)


# What Kueue admitted, changed afterwards: it looks at neither of these.
CHANGES = {
    "stops what Kueue would": ("jobset-chips-only", {"spec": {"suspend": True}}),
    "stops a job of its own": ("job-one-slice", {"spec": {"suspend": True}}),
    "has a controller that Kueue cannot stop": (
        "raycluster-two-slices",
        {"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}},
    ),
    "keeps its pods after it is deleted": ("job-one-slice", {"metadata": {"finalizers": ["example.com/hold"]}}),
    "leaves its pods to nobody": ("job-one-slice", {"metadata": {"finalizers": ["orphan"]}}),
}


@pytest.mark.parametrize("what", CHANGES)
def test_an_admitted_workload_stays_what_it_is(what: str, place: Place) -> None:
    name, change = CHANGES[what]
    job = place.admitted(place.manifest(name))
    until("Kueue to start it", lambda: None if place.live(job)["spec"].get("suspend") else True)
    with pytest.raises(Refused, match=r"only Kueue|Kueue has admitted it|its pods would go on|Kueue could not stop"):
        place.member.merge(job["kind"], job["metadata"]["name"], change, place.team)
    place.member.merge(job["kind"], job["metadata"]["name"], {"metadata": {"labels": {"honest": "yes"}}}, place.team)


def test_an_admitted_ray_cluster_goes_to_no_other_hosts(place: Place) -> None:
    job = place.admitted(place.manifest("raycluster-two-slices"))
    spec = place.live(job)["spec"]
    spec.pop("suspend", None)  # which Kueue may just be changing
    spec["workerGroupSpecs"][0]["template"]["spec"].setdefault("nodeSelector", {})["tpuenv/pool-group"] = "lab"
    with pytest.raises(Refused, match="create another one, with another name"):
        place.member.merge("RayCluster", job["metadata"]["name"], {"spec": spec}, place.team)


@pytest.mark.parametrize("name", ["job-one-slice", "jobset-chips-only", "raycluster-two-slices", "rayjob-one-slice"])
def test_nobody_leaves_pods_behind(name: str, place: Place) -> None:
    job = place.admitted(place.manifest(name))
    with pytest.raises(Refused, match="delete it without --cascade=orphan"):
        place.member.delete(job, propagation="Orphan")
    place.member.delete(job)
    until("it to be gone", lambda: None if place.admin.list(job["kind"], place.team) else True)


@pytest.mark.parametrize("name", HONEST)
def test_the_honest_twin_starts(name: str, place: Place) -> None:
    manifest = place.manifest(name)
    if manifest["kind"] in KINDS:
        place.run(place.admitted(manifest))
    else:
        place.submit(manifest)


def test_a_member_makes_no_pod(place: Place) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a", "image": "a"}]}}
    with pytest.raises(Refused, match='cannot create resource "pods"'):
        place.submit({**pod, "metadata": {"name": "a", "namespace": place.team}})


def test_pods_without_requests_are_counted(place: Place) -> None:
    job = place.admitted(
        place.manifest("job-cpu", {"job": {"parallelism": 20, "completions": 20}, "container": {"resources": None}})
    )
    until("Kueue to count", lambda: place.usage("cpu") == "2" or None)
    place.run(job)


def test_more_pods_of_an_own_job_are_counted(place: Place) -> None:
    job = place.admitted(place.manifest("job-one-slice"))
    place.member.merge("Job", "train", {"spec": {"parallelism": 8, "completions": 8}}, place.team)
    until("Kueue to count", lambda: place.usage("google.com/tpu") == "32" or None)
    place.run(job)


def test_volumes_end_at_the_quota(place: Place) -> None:
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "60Ti"}}}}
    policies = [{"templates": [{"metadata": {"name": "data"}, **claim}]}]
    mounted = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    change = {"spec": {"volumeClaimPolicies": policies}, "container": mounted}
    place.admitted(place.manifest("jobset-driver-and-slice", change))

    def refused() -> str | None:
        said = [event["message"] for event in place.admin.list("Event", place.team)]
        return next((message for message in said if "exceeded quota: tpuenv" in message), None)

    assert "requests.storage=60Ti" in until("the quota to refuse it", refused)
    assert place.admin.list("PersistentVolumeClaim", place.team) == []


def test_no_priority_takes_the_slice_of_another_team(places: dict[str, Place]) -> None:
    theirs = places["serving"].admitted(places["serving"].manifest("jobset-one-slice"))
    urgent = {"metadata": {"labels": {"kueue.x-k8s.io/priority-class": "veryhigh"}}}
    job = places["research"].submit(places["research"].manifest("jobset-two-slices", urgent))
    until("Kueue to decide", lambda: outcome_of(places["research"].admin, job) or None)
    outcome = outcome_of(places["research"].admin, job)
    assert outcome is not None and outcome.kind == PENDING
    places["serving"].run(theirs)


def test_a_ray_job_on_a_cluster_that_kueue_did_not_admit_starts_nothing(place: Place) -> None:
    manifest = place.manifest("rayjob-one-slice", {"spec": {"clusterSelector": {"ray.io/cluster": "nothing"}}})
    try:
        place.submit(manifest)
    except Refused as refused:
        assert "clusterSelector" in refused.message
    place.run(place.admitted(place.manifest("job-cpu", {"metadata": {"name": "later"}})))


def test_images_come_from_where_the_namespace_says(place: Place) -> None:
    def annotate(value: str | None) -> None:
        place.admin.merge("Namespace", place.team, {"metadata": {"annotations": {IMAGES_ANNOTATION: value}}})

    honest = place.manifest("job-cpu", {"container": {"image": "registry.example/team/a"}})
    image = {"image": "registry.example.evil/team/a"}
    foreign = place.manifest("job-cpu", {"metadata": {"name": "foreign"}, "container": image})
    annotate("gke.gcr.io/,registry.example/")
    try:
        until("the policy to know", lambda: "ALLOWED_IMAGES" in _refused(place.member, foreign) or None)
        place.run(place.admitted(honest))
    finally:
        annotate(None)
    until("the policy to forget", lambda: _refused(place.member, foreign) == "" or None)


# host_access


def test_a_team_with_host_access_runs_what_xpk_writes(places: dict[str, Place]) -> None:
    older = places["older"]
    older.run(older.admitted(older.manifest("ordinary-xpk")))


@pytest.mark.parametrize(
    ("team", "name", "change"),
    [
        ("research", "ordinary-xpk", {}),
        ("research", "job-cpu", {"container": {"securityContext": {"privileged": True}}}),
        ("older", "job-cpu", {"container": {"securityContext": {"privileged": True}}}),
        ("older", "job-cpu", {"pod": {"hostNetwork": True}}),
        ("older", "ordinary-xpk", {"pod": {"hostPID": True}}),
        ("older", "ordinary-xpk", {"container": {"resources": {"limits": {"google.com/tpu": 0}}}}),
    ],
)
def test_host_access_is_of_that_team_and_of_pods_with_chips(
    team: str, name: str, change: Object, places: dict[str, Place]
) -> None:
    with pytest.raises(Refused, match="pods of teams have no access to their host"):
        places[team].submit(places[team].manifest(name, change))


# The table of rules: Python and the API server's CEL


def _refused(api: ApiServer, manifest: Object) -> str:
    """What the API server says against an object, or ""."""
    try:
        api.create(manifest, dry_run=True)
    except Refused as refused:
        return refused.message
    return ""


@pytest.mark.parametrize("case", [case for case in rule_cases() if case.place.startswith("boundary")], ids=str)
def test_the_api_server_refuses_what_check_refuses(case: Any, place: Place) -> None:
    manifest = place.here(case.manifest())
    assert [*refusals_of(manifest, Boundary())]
    reasons = [rule.why for rule in RULES if rule.code == case.code] or [FINALIZER[0], RAY_SIZE[0]]
    said = _refused(place.member, manifest)
    assert said, "by the policy, or before by somebody else"
    assert "ValidatingAdmissionPolicy" not in said or any(why in said for why in reasons), said


def _all_manifests() -> dict[str, Object]:
    """Every manifest of tests/admission that an API server can read."""
    plain = {path.stem: manifest_of(path.stem) for path in sorted(CASES.glob("*.yaml"))}
    return {**plain, **{str(case): case.manifest() for case in rule_cases() if case.place.startswith("boundary")}}


MANIFESTS = _all_manifests()


@pytest.mark.parametrize("name", MANIFESTS)
def test_the_policies_refuse_a_workload_where_check_does(name: str, place: Place) -> None:
    """And nothing else of tests/admission: others may."""
    manifest = place.here(MANIFESTS[name])
    said = _refused(place.member, manifest)
    if "ValidatingAdmissionPolicy" in said or not said:
        assert bool(said) == bool([*refusals_of(manifest, Boundary())]), said


def _pods() -> dict[str, Object]:
    pods = {}
    for name, manifest in MANIFESTS.items():
        for number, template in enumerate(templates_of(Field(manifest))):
            if template.value:
                pods[f"{name}-{number}"] = template.value
    return pods


@pytest.mark.parametrize("team", ["research", "older"])
def test_the_policies_refuse_a_pod_where_check_does_and_take_none_that_baseline_refuses(
    team: str, places: dict[str, Place]
) -> None:
    place, differ = places[team], []
    for name, template in _pods().items():
        pod = _pod(template, team)
        said = _refused(place.admin, pod)
        ours = [*refusals_of(pod, Boundary(host_access=team == "older"))]
        if "violates PodSecurity" in said and not ours:
            differ.append(f"{name}: baseline alone refuses it: {said}")
        if ("ValidatingAdmissionPolicy" in said or not said) and bool(said) != bool(ours):
            differ.append(f"{name}: here {ours}, there {said!r}")
    assert differ == []


def _pod(template: Object, namespace: str) -> Object:
    metadata = template.get("metadata", {})
    labels = {**metadata.get("labels", {}), ADMITTED_POD_LABEL: "main"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "name": "a", "namespace": namespace, "labels": labels},
        "spec": template["spec"],
    }
