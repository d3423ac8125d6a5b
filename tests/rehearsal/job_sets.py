"""A JobSet for the default environment, as a researcher would submit it."""

from __future__ import annotations

from typing import Any


def job_set(name: str = "train", *, chips: int = 4, hosts: int = 4, **labels: str) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "x",
        "resources": {
            "requests": {"cpu": "1", "memory": "1Gi", "google.com/tpu": str(chips)},
            "limits": {"google.com/tpu": str(chips)},
        },
    }
    pod = {
        "restartPolicy": "Never",
        "containers": [container],
        "nodeSelector": {
            "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
            "cloud.google.com/gke-tpu-topology": "4x4",
        },
    }
    replicated = {"template": {"spec": {"parallelism": hosts, "completions": hosts, "template": {"spec": pod}}}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {
            "name": name,
            "namespace": "tpu-training",
            "labels": {"kueue.x-k8s.io/queue-name": "default", **labels},
        },
        "spec": {"replicatedJobs": [{"name": "slice", "replicas": 1, **replicated}]},
    }
