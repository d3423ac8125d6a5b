"""What hello-tpu does in the pods of `tpuenv verify`, for a fake cluster that runs no programs: it logs, and ends."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from environment import Environment
from rehearsal.http_server import Request
from rehearsal.kubernetes.nodes import node_objects
from rehearsal.kubernetes.placement import all_nodes
from tpuenv.verification.plan import other_buckets
from vocabulary.keys import COMPLETION_INDEX_LABEL, JOBSET_LABEL, SIMULATED_NODE_ANNOTATION

if TYPE_CHECKING:
    from tests.tpuenv.jobs.conftest import Ground

# Of a real run on this machine: 4 processes with 4 CPU devices each, on one slice, and buckets of the fake Google.
RECORDED = Path(__file__).with_name("hello-tpu.log").read_text(encoding="utf-8")

# What a TPU says in the place of CPU devices.
ON_TPU: dict[str, Any] = {
    "device": "TPU v6 lite",
    "all_gather": [
        {"within": "slice", "gbytes_per_second_per_chip": 120.5, "share_of_data_sheet": 0.3012, "error": 0.0}
    ],
}

_READ = re.compile(r"GET /.*/namespaces/([^/]+)/jobsets/(verify-\w+)")


def report(environment: Environment, team: str, group: str, **change: Any) -> dict[str, Any]:
    """What was recorded, as it would be for that team on that pool group; `change` replaces values."""
    slice_ = next(item.slice for item in environment.groups if item.name == group)
    refused = dict.fromkeys(other_buckets(environment, team), "refused")
    recorded = json.loads(RECORDED.splitlines()[0])
    return {**recorded, "hosts": slice_.hosts, "chips": slice_.chips, "other_buckets": refused, **change}


@dataclass(kw_only=True)
class HelloProgram:
    """At the second read of a job of `tpuenv verify` its pods log and end, if they run. `change` is what host 0 reports
    otherwise, and `others` what other hosts do, by number; `end` is the condition of the JobSet.
    """

    ground: Ground
    change: dict[str, Any] = field(default_factory=lambda: dict(ON_TPU))
    others: dict[int, dict[str, Any]] = field(default_factory=dict)
    end: str = "Completed"
    logs: bool = True
    jobs: list[dict[str, Any]] = field(default_factory=list)  # each as it was created
    _read: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.ground.before.append(self._run)

    def _run(self, request: Request) -> None:
        read = _READ.fullmatch(f"{request.method} {request.path}")
        if read is None:
            return
        namespace, name = read.groups()
        api = self.ground.api
        there = api.all(api.resource("jobset.x-k8s.io/v1alpha2", "JobSet"), namespace)
        job = next((item for item in there if item["metadata"]["name"] == name), None)
        if job is None or name in [item["metadata"]["name"] for item in self.jobs]:
            return
        pods = [pod for pod in self.ground.pods(namespace) if pod["metadata"]["labels"].get(JOBSET_LABEL) == name]
        if not pods or any(pod["status"]["phase"] != "Running" for pod in pods):
            return
        if name not in self._read:
            self._read.add(name)
            return
        self.jobs.append(job)
        for pod in pods:
            host = int(pod["metadata"]["labels"][COMPLETION_INDEX_LABEL])
            if self.logs and (host == 0 or host in self.others):
                refused = {"other_services": dict.fromkeys(_addresses(job), "refused")}
                said = {**refused, **self.change, **self.others.get(host, {}), "host": host}
                line = report(self.ground.environment, namespace, _group(job), **said)
                self.ground.log(pod["metadata"]["name"], json.dumps(line), namespace=namespace)
        self.ground.end(name, self.end, namespace=namespace)


def _addresses(job: dict[str, Any]) -> list[str]:
    """Which it was given to try."""
    words = [word.partition("=") for word in _pod(job)["containers"][0]["args"]]
    return next(value.split(",") for key, _, value in words if key == "other_services")


def _group(job: dict[str, Any]) -> str:
    return str(_pod(job)["nodeSelector"]["tpuenv/pool-group"])


def _pod(job: dict[str, Any]) -> dict[str, Any]:
    (replicated,) = job["spec"]["replicatedJobs"]
    spec: dict[str, Any] = replicated["template"]["spec"]["template"]["spec"]
    return spec


def make_nodes_real(ground: Ground) -> None:
    """Without the annotation that says that they are simulated."""
    api = ground.api
    for node in node_objects(api.cluster, all_nodes(api)):
        del node["metadata"]["annotations"][SIMULATED_NODE_ANNOTATION]
        api.store(node)
