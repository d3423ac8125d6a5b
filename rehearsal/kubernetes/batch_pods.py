"""The pods of a batch Job, with a status as a kubelet writes it."""

from __future__ import annotations

import copy
import hashlib
import uuid
from collections.abc import Iterator

from rehearsal.kubernetes.objects import Object
from vocabulary.keys import COMPLETION_INDEX_LABEL, JOB_LABEL, JOB_UID_LABEL, RESTART_ATTEMPT_LABEL

STARTED = "2026-01-01T00:00:00Z"  # of every container
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # those of generated names: k8s.io/apimachinery/pkg/util/rand


def pods_of_batch_job(
    name: str, owner: Object, spec: Object, labels: dict[str, str], nodes: list[str], end: str
) -> Iterator[Object]:
    """JobSet makes its Jobs Indexed; a Job of its own says whether it is."""
    template = spec["template"]
    indexed = owner["kind"] == "JobSet" or spec.get("completionMode") == "Indexed"
    attempt = labels.get(RESTART_ATTEMPT_LABEL, "0")
    job_uid = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{owner['metadata'].get('uid', '')}/{name}/{attempt}"))
    for index in range(int(spec.get("parallelism", 1))):
        of_template = copy.deepcopy(template.get("metadata") or {})
        numbered = {COMPLETION_INDEX_LABEL: str(index)} if indexed else {}
        node = nodes[index] if index < len(nodes) else ""
        pod_name = f"{name}-{index}-{suffix(job_uid, index)}" if indexed else f"{name}-{suffix(job_uid, index)}"
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **of_template,
                "name": pod_name,
                "namespace": owner["metadata"]["namespace"],
                "uid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{job_uid}/{index}")),
                "creationTimestamp": owner["metadata"].get("creationTimestamp"),
                "labels": {
                    **(of_template.get("labels") or {}),
                    **labels,
                    **numbered,
                    JOB_LABEL: name,
                    "job-name": name,
                    JOB_UID_LABEL: job_uid,
                },
                "annotations": {**(of_template.get("annotations") or {}), **numbered},
                "ownerReferences": [
                    {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job_uid, "controller": True}
                ],
            },
            "spec": {**copy.deepcopy(template["spec"]), **({"nodeName": node} if node else {})},
            "status": pod_status(template["spec"], end, has_node=bool(node)),
        }


def pod_status(spec: Object, end: str, *, has_node: bool) -> Object:
    """Running on its node until it has ended in the phase `end`; without a node it is pending."""
    if not has_node and not end:
        message = "0/0 nodes are available: no node of the pool is left."
        unschedulable = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
        }
        return {"phase": "Pending", "conditions": [unschedulable]}
    state: Object = {"running": {"startedAt": STARTED}}
    if end:
        state = {
            "terminated": {
                "exitCode": 0 if end == "Succeeded" else 1,
                "reason": "Completed" if end == "Succeeded" else "Error",
            }
        }
    ready = not end
    return {
        "phase": end or "Running",
        "conditions": [{"type": "Ready", "status": str(ready)}],
        "containerStatuses": [
            {"name": item["name"], "image": item.get("image", ""), "ready": ready, "restartCount": 0, "state": state}
            for item in spec.get("containers", [])
        ],
    }


def suffix(job_uid: str, index: int) -> str:
    """The random end of a generated name."""
    digest = hashlib.sha256(f"{job_uid}/{index}".encode()).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:5])
