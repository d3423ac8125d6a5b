"""Objects in the cluster that Terraform owns as they are written: what somebody else changes is put back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cdktf import ITerraformDependable
from cdktf_cdktf_provider_kubernetes.manifest import Manifest, ManifestFieldManager
from constructs import Construct


def owned(
    scope: Construct, id_: str, manifest: dict[str, Any], *, depends_on: Sequence[ITerraformDependable] = ()
) -> Manifest:
    manager = ManifestFieldManager(name="tpuenv", force_conflicts=True)
    return Manifest(scope, id_, manifest=manifest, field_manager=manager, depends_on=list(depends_on) or None)


def owned_policy(
    scope: Construct, name: str, spec: Mapping[str, Any], *, where: Mapping[str, Any] | None = None
) -> tuple[Manifest, Manifest]:
    """A ValidatingAdmissionPolicy and its binding; `where` limits it to some namespaces."""
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    policy = owned(scope, name, {**head, "kind": "ValidatingAdmissionPolicy", "spec": spec})
    bound = {"policyName": name, "validationActions": ["Deny"], **({"matchResources": where} if where else {})}
    binding = {**head, "kind": "ValidatingAdmissionPolicyBinding", "spec": bound}
    return policy, owned(scope, f"{name}-binding", binding, depends_on=[policy])
