"""Whether a node can pull an image: with image streaming its account has to be allowed to use the project's services.

https://cloud.google.com/kubernetes-engine/docs/how-to/image-streaming#requirements
https://github.com/terraform-google-modules/terraform-google-kubernetes-engine/issues/2251
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.cloud import Cloud
from rehearsal.google import permissions
from rehearsal.terraform.values import block_at, value_at

POOL = "google_container_node_pool"
_USE = "serviceusage.services.use"

# Only what is in Artifact Registry is streamed.
_STREAMED = re.compile(r"[a-z0-9-]+-docker\.pkg\.dev/")


def refused(cloud: Cloud, cluster: str, body: Mapping[str, Any]) -> tuple[str, ...]:
    """A line for each node pool on which the pods of a workload never start, because it does not get their images."""
    images = ", ".join(sorted({image for image in _images(body) if _STREAMED.match(image)}))
    project = cluster.split("/")[1]
    lines = []
    for item in sorted(cloud.find(POOL, prefix=f"{cluster}/nodePools/"), key=lambda item: item.name):
        config = block_at(item.attributes, "node_config")
        account = str(config.get("service_account") or "").rpartition("/")[2]
        # A pool with a taint of its own is not for jobs. GKE's own on TPU hosts is not in the configuration.
        if not images or config.get("taint") or value_at(config, "gcfs_config.enabled") is not True:
            continue
        if why := permissions.denied(cloud, account, _USE, f"projects/{project}", project=project):
            pool = item.name.rpartition("/")[2]
            lines.append(f"pods on node pool {pool} do not start: {account} cannot stream {images}: {why}")
    return tuple(lines)


def _images(body: Any) -> Iterator[str]:
    """Of all containers, wherever the kind of workload has its pods."""
    if isinstance(body, list):
        for item in body:
            yield from _images(item)
    elif isinstance(body, Mapping):
        for key, value in body.items():
            if key in ("containers", "initContainers"):
                yield from (str(item["image"]) for item in value if item.get("image"))
            else:
                yield from _images(value)
