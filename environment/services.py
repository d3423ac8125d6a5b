"""The Google APIs that the stacks use: `tpuenv bootstrap` enables them, and the foundation stack declares the same."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

SERVICES: Mapping[str, str] = MappingProxyType(
    {
        "serviceusage.googleapis.com": "enables and lists the other APIs",
        "cloudresourcemanager.googleapis.com": "reads the project and its number, and grants roles in it",
        "compute.googleapis.com": "network, subnet, router and NAT, firewall, workload policies, and the nodes",
        "container.googleapis.com": "the GKE cluster and its node pools",
        # https://cloud.google.com/kubernetes-engine/docs/how-to/image-streaming#requirements
        "containerfilesystem.googleapis.com": "image streaming: pods start before their image is all there",
        "iam.googleapis.com": "the nodes' service account, custom roles",
        # https://cloud.google.com/kubernetes-engine/docs/how-to/workload-identity#before_you_begin
        "iamcredentials.googleapis.com": "Workload Identity: short-lived credentials for pods",
        "storage.googleapis.com": "the teams' buckets and the Terraform state",
        "artifactregistry.googleapis.com": "the image registry",
        "aiplatform.googleapis.com": "Vertex AI TensorBoard",
        "logging.googleapis.com": "logs of nodes, pods and the control plane",
        "monitoring.googleapis.com": "metrics of nodes, and managed Prometheus",
        "cloudbuild.googleapis.com": "builds of images, and the pipeline",
        # https://cloud.google.com/build/docs/automating-builds/github/connect-repo-github#before_you_begin
        "secretmanager.googleapis.com": "the token of the pipeline's connection to the repository",
        "cloudscheduler.googleapis.com": "the pipeline's nightly drift check",
    }
)
"""Name of the service -> what needs it. None is ever switched off again: other users of the project may need it too."""

PREFLIGHT_SERVICES: Mapping[str, str] = MappingProxyType(
    {
        "cloudbilling.googleapis.com": "tpuenv preflight: the billing account",
        "cloudquotas.googleapis.com": "tpuenv preflight: quotas of TPUs",
        "orgpolicy.googleapis.com": "tpuenv preflight: organisation policies",
    }
)
"""As SERVICES; `tpuenv bootstrap` enables them too, and no stack needs them."""

EGRESS_SERVICES: Mapping[str, str] = MappingProxyType(
    {"dns.googleapis.com": "the names of Google's APIs, by EGRESS=google"}
)
"""As SERVICES; only the foundation of such an environment enables it."""

TPU_VM_SERVICES: Mapping[str, str] = MappingProxyType(
    {
        "tpu.googleapis.com": "TPU VMs",
        "iap.googleapis.com": "ssh to TPU VMs, which have no public address",
        "oslogin.googleapis.com": "ssh keys of the teams' members",
    }
)
"""As SERVICES; the stack tpu-vms enables them itself, since few environments have it."""
