"""A cluster that may be used: reached through `kubectl proxy`, with nothing of this project in it before or after."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tests.cluster.api import ApiServer
from vocabulary.keys import TEAM_LABEL

# What the queues are made of: a cluster that has any is somebody's, ours or not.
QUEUE_KINDS = (
    "ClusterQueue",
    "LocalQueue",
    "ResourceFlavor",
    "Workload",
    "WorkloadPriorityClass",
    "AdmissionCheck",
    "ProvisioningRequestConfig",
)
OURS = re.compile("tpuenv-.*|((jobs|deletions)-of-members|(pods|services|secrets)-of-teams)(-binding)?")
OUR_KINDS = ("ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")


class CannotUse(Exception):
    """The text says which cluster it is and what to do."""


def what_is_ours(api: ApiServer, namespaces: Iterable[str]) -> list[str]:
    """The objects that a test would take for its own, as `kind name`; `namespaces` are those that it makes."""
    made = {*namespaces}
    names = [f"{kind} {item['metadata']['name']}" for kind in QUEUE_KINDS for item in api.list(kind)]
    for kind in OUR_KINDS:
        names += [f"{kind} {name}" for item in api.list(kind) if OURS.fullmatch(name := item["metadata"]["name"])]
    for namespace in api.list("Namespace"):
        metadata = namespace["metadata"]
        if metadata["name"] in made or TEAM_LABEL in metadata.get("labels", {}):
            names.append(f"Namespace {metadata['name']}")
    return names


def refuse_a_cluster_in_use(api: ApiServer, namespaces: Iterable[str]) -> None:
    """Raises CannotUse."""
    if names := what_is_ours(api, namespaces):
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        raise CannotUse(
            f"the cluster of KUBECONFIG is in use, or holds what a test that was killed has left: {shown}. These tests "
            "create and delete queues and namespaces: name an empty cluster, or delete these objects if nobody needs "
            "them"
        )


def can_run_pods(api: ApiServer) -> bool:
    """Whether a node is ready and takes any pod. A lab of API server and controllers alone has none."""
    return any(
        {"type": "Ready", "status": "True"}.items() <= condition.items()
        for node in api.list("Node")
        if not node["spec"].get("unschedulable") and not node["spec"].get("taints")
        for condition in node.get("status", {}).get("conditions", [])
    )


@contextmanager
def reached(kubeconfig: str) -> Iterator[ApiServer]:
    """The API server of a kubeconfig's current context. Raises CannotUse."""
    if not kubeconfig:
        raise CannotUse(
            "KUBECONFIG: not set; name the kubeconfig of an empty cluster, such as one of `kind create cluster`"
        )
    command = ["kubectl", "--kubeconfig", kubeconfig, "proxy", "--port=0"]
    try:
        proxy = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "KUBECONFIG": kubeconfig},
        )
    except OSError as error:
        raise CannotUse(f"kubectl: {error.strerror}; these tests reach the cluster through `kubectl proxy`") from error
    with proxy:
        try:
            assert proxy.stdout is not None and proxy.stderr is not None
            line = proxy.stdout.readline()
            served = re.search(r"127\.0\.0\.1:\d+", line)
            if not served:
                raise CannotUse(f"KUBECONFIG: '{kubeconfig}' cannot be used: {proxy.stderr.read().strip() or line}")
            yield ApiServer(address=f"http://{served[0]}")
        finally:
            proxy.terminate()
