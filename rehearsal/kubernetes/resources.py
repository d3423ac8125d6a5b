"""Which kinds an API server serves: its own, and those whose CRDs a chart or GKE has installed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One kind. `plural` is its name in paths."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def qualified(self) -> str:
        """ "clusterqueues.kueue.x-k8s.io": the name in errors, and of the CRD."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


def _resources(api_version: str, *, namespaced: str = "", cluster: str = "") -> list[Resource]:
    resources = []
    for kinds, is_namespaced in ((namespaced, True), (cluster, False)):
        for item in kinds.split():
            kind, _, plural = item.partition("=")
            resources.append(
                Resource(
                    api_version=api_version, kind=kind, plural=plural or kind.lower() + "s", namespaced=is_namespaced
                )
            )
    return resources


# https://kubernetes.io/docs/reference/kubernetes-api/
BUILT_IN = [
    *_resources(
        "v1",
        namespaced="ConfigMap Secret Service ServiceAccount Pod ResourceQuota LimitRange PersistentVolumeClaim"
        " Endpoints=endpoints Event",
        cluster="Namespace Node PersistentVolume",
    ),
    *_resources("apps/v1", namespaced="Deployment StatefulSet DaemonSet ReplicaSet"),
    *_resources("batch/v1", namespaced="Job CronJob"),
    *_resources(
        "rbac.authorization.k8s.io/v1", namespaced="Role RoleBinding", cluster="ClusterRole ClusterRoleBinding"
    ),
    *_resources("networking.k8s.io/v1", namespaced="NetworkPolicy=networkpolicies Ingress=ingresses"),
    *_resources("policy/v1", namespaced="PodDisruptionBudget"),
    *_resources("scheduling.k8s.io/v1", cluster="PriorityClass=priorityclasses"),
    *_resources("storage.k8s.io/v1", cluster="StorageClass=storageclasses"),
    *_resources("coordination.k8s.io/v1", namespaced="Lease"),
    *_resources(
        "admissionregistration.k8s.io/v1",
        cluster="ValidatingAdmissionPolicy=validatingadmissionpolicies ValidatingAdmissionPolicyBinding"
        " ValidatingWebhookConfiguration MutatingWebhookConfiguration",
    ),
    *_resources("apiextensions.k8s.io/v1", cluster="CustomResourceDefinition"),
    # GKE has this by itself. https://cloud.google.com/stackdriver/docs/managed-prometheus
    *_resources(
        "monitoring.googleapis.com/v1",
        namespaced="PodMonitoring Rules=rules",
        cluster="ClusterPodMonitoring ClusterRules=clusterrules",
    ),
]

# The CRDs of Kueue 0.19.2, in its chart's templates: they go with the release.
KUEUE = _resources(
    "kueue.x-k8s.io/v1beta2",
    namespaced="LocalQueue Workload",
    cluster="ClusterQueue ResourceFlavor Cohort WorkloadPriorityClass=workloadpriorityclasses AdmissionCheck"
    " Topology=topologies MultiKueueCluster MultiKueueConfig ProvisioningRequestConfig",
)
# The CRD of JobSet 0.12.0, in its chart's crds/: it stays when the release goes.
JOBSET = _resources("jobset.x-k8s.io/v1alpha2", namespaced="JobSet")
# With GKE's Ray operator add-on. https://cloud.google.com/kubernetes-engine/docs/add-on/ray-on-gke/concepts/overview
RAY = _resources("ray.io/v1", namespaced="RayCluster RayJob RayService")

CUSTOM = [*KUEUE, *JOBSET, *RAY]
ALL = [*BUILT_IN, *CUSTOM]

CRD = next(item for item in BUILT_IN if item.kind == "CustomResourceDefinition")
NAMESPACE = next(item for item in BUILT_IN if item.kind == "Namespace")
POD = next(item for item in BUILT_IN if item.kind == "Pod")
NODE = next(item for item in BUILT_IN if item.kind == "Node")


def crd(resource: Resource) -> dict[str, object]:
    """The CustomResourceDefinition that makes an API server serve `resource`; without its schema."""
    group, version = resource.api_version.split("/")
    scope = "Namespaced" if resource.namespaced else "Cluster"
    names = {"kind": resource.kind, "plural": resource.plural}
    return {
        "apiVersion": CRD.api_version,
        "kind": CRD.kind,
        "metadata": {"name": resource.qualified},
        "spec": {"group": group, "names": names, "scope": scope, "versions": [{"name": version, "served": True}]},
    }
