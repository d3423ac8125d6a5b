"""What the fake API server says that members may do: each in the namespaces of their teams, and nothing more."""

from __future__ import annotations

import json

import pytest

from rehearsal.google.network import CLUSTER
from rehearsal.http_server import Request
from rehearsal.kubernetes.server import PREFIX, serve
from tests.rehearsal.fake import FakeCloud


def may(fake: FakeCloud, user: str, what: str, namespace: str, *groups: str) -> bool:
    """`what` is a verb and a resource as kubectl writes them: "create pods/exec", "delete jobsets.jobset.x-k8s.io"."""
    verb, _, resource = what.partition(" ")
    name, _, subresource = resource.partition("/")
    plural, _, group = name.partition(".")
    asked = {"verb": verb, "group": group, "resource": plural, "subresource": subresource, "namespace": namespace}
    body = {"spec": {"user": user, "groups": list(groups), "resourceAttributes": asked}}
    (cluster,) = fake.cloud.find(CLUSTER)
    path = f"{PREFIX}{cluster.name}/apis/authorization.k8s.io/v1/subjectaccessreviews"
    answer = serve(fake.cloud, Request(method="POST", path=path, query={}, headers={}, body=json.dumps(body).encode()))
    assert answer.status == 200
    return bool(json.loads(answer.body)["status"]["allowed"])


WHOLE_WAY = [
    *(f"{verb} pods/{what}" for what in ("portforward", "exec") for verb in ("create", "get")),
    *(
        "get pods",
        "list pods",
        "get pods/log",
        "get services",
        "create jobsets.jobset.x-k8s.io",
        "create rayjobs.ray.io",
    ),
]
NEVER = [
    *("create pods", "delete pods", "get nodes", "create roles.rbac.authorization.k8s.io", "create pods/attach"),
    *("update localqueues.kueue.x-k8s.io", "delete workloads.kueue.x-k8s.io", "create serviceaccounts/token"),
]


@pytest.mark.parametrize("what", WHOLE_WAY)
def test_members_submit_read_forward_ports_and_exec_in_their_namespace_alone(what: str, fleet: FakeCloud) -> None:
    assert may(fleet, "alice@example.com", what, "research")
    assert not may(fleet, "alice@example.com", what, "serving")
    assert not may(fleet, "alice@example.com", what, "kueue-system")
    assert not may(fleet, "mallory@example.com", what, "research")


@pytest.mark.parametrize("what", NEVER)
def test_members_do_nothing_that_goes_round_the_queue(what: str, fleet: FakeCloud) -> None:
    assert not may(fleet, "alice@example.com", what, "research")


def test_members_of_a_group_may_what_the_group_may(fleet: FakeCloud) -> None:
    assert may(fleet, "somebody@example.com", "create pods/exec", "research", "tpu-research@example.com")
    assert not may(fleet, "somebody@example.com", "create pods/exec", "research", "others@example.com")


def test_every_member_reads_what_decides_about_the_queues(fleet: FakeCloud) -> None:
    assert may(fleet, "alice@example.com", "list clusterqueues.kueue.x-k8s.io", "")
    assert not may(fleet, "alice@example.com", "update clusterqueues.kueue.x-k8s.io", "")
