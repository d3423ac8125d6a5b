"""What the plan identity may see in the cluster: the objects that the stacks made, and Helm's records of its releases.

Planning writes nothing there. The kubernetes provider 2.38.0 asks for a dry run, which takes the right to patch, only
for custom resources without a schema (its manifest/provider/plan.go), and Kueue's have one; the helm provider 3.1.1
only under its experiment `manifest`.
"""

from __future__ import annotations

from collections.abc import Sequence

from cdktf import ITerraformDependable
from cdktf_cdktf_provider_google.data_google_service_account import DataGoogleServiceAccount
from cdktf_cdktf_provider_kubernetes.cluster_role_binding_v1 import (
    ClusterRoleBindingV1,
    ClusterRoleBindingV1Metadata,
    ClusterRoleBindingV1RoleRef,
    ClusterRoleBindingV1Subject,
)
from cdktf_cdktf_provider_kubernetes.cluster_role_v1 import ClusterRoleV1, ClusterRoleV1Metadata, ClusterRoleV1Rule
from cdktf_cdktf_provider_kubernetes.role_binding_v1 import (
    RoleBindingV1,
    RoleBindingV1Metadata,
    RoleBindingV1RoleRef,
    RoleBindingV1Subject,
)
from cdktf_cdktf_provider_kubernetes.role_v1 import RoleV1, RoleV1Metadata, RoleV1Rule
from constructs import Construct

from environment import Environment
from environment.names import JOBSET_NAMESPACE, KUEUE_NAMESPACE

NAME = "tpuenv-plan"
API_GROUP = "rbac.authorization.k8s.io"

# By API group: the kinds that the stacks have.
KINDS = {
    "": ("namespaces", "serviceaccounts"),
    API_GROUP: ("roles", "rolebindings", "clusterroles", "clusterrolebindings"),
    "admissionregistration.k8s.io": ("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
    "scheduling.k8s.io": ("priorityclasses",),
    "kueue.x-k8s.io": (
        "admissionchecks",
        "clusterqueues",
        "localqueues",
        "provisioningrequestconfigs",
        "resourceflavors",
        "workloadpriorityclasses",
    ),
}

# The kubernetes provider looks through them for the schema of what it is to plan.
DEFINITIONS = ("apiextensions.k8s.io", "customresourcedefinitions")

# Helm keeps its releases in Secrets and looks for them by label, so single names cannot be given. The certificates of
# the webhooks are in the same namespaces and can be read too; nothing of the teams is there.
RELEASES = (JOBSET_NAMESPACE, KUEUE_NAMESPACE)


class PlanAccess(Construct):
    """Read-only, for the account alone. Not in it: pods, jobs, logs, and the Secrets and ConfigMaps of the teams.

    GKE knows a service account of Google's by its email, or by its unique id where a token carries no email.
    https://cloud.google.com/kubernetes-engine/docs/how-to/role-based-access-control
    """

    def __init__(
        self, scope: Construct, id_: str, *, environment: Environment, depends_on: Sequence[ITerraformDependable]
    ) -> None:
        super().__init__(scope, id_)
        names = environment.names
        account = DataGoogleServiceAccount(self, "account", account_id=names.account_email(names.plan_account))
        users = [names.account_email(names.plan_account), account.unique_id]
        role = ClusterRoleV1(
            self,
            "reader",
            metadata=ClusterRoleV1Metadata(name=NAME),
            rule=[
                *(
                    ClusterRoleV1Rule(api_groups=[group], resources=list(kinds), verbs=["get"])
                    for group, kinds in KINDS.items()
                ),
                ClusterRoleV1Rule(api_groups=[DEFINITIONS[0]], resources=[DEFINITIONS[1]], verbs=["list"]),
            ],
        )
        ClusterRoleBindingV1(
            self,
            "readers",
            metadata=ClusterRoleBindingV1Metadata(name=NAME),
            role_ref=ClusterRoleBindingV1RoleRef(api_group=API_GROUP, kind="ClusterRole", name=role.metadata.name),
            subject=[ClusterRoleBindingV1Subject(api_group=API_GROUP, kind="User", name=user) for user in users],
        )
        for namespace in RELEASES:
            self._releases(namespace, users, depends_on)

    def _releases(self, namespace: str, users: Sequence[str], depends_on: Sequence[ITerraformDependable]) -> None:
        """The namespace comes with its first release."""
        role = RoleV1(
            self,
            f"releases-{namespace}",
            metadata=RoleV1Metadata(name=NAME, namespace=namespace),
            rule=[RoleV1Rule(api_groups=[""], resources=["secrets"], verbs=["get", "list"])],
            depends_on=list(depends_on),
        )
        RoleBindingV1(
            self,
            f"release-readers-{namespace}",
            metadata=RoleBindingV1Metadata(name=NAME, namespace=namespace),
            role_ref=RoleBindingV1RoleRef(api_group=API_GROUP, kind="Role", name=role.metadata.name),
            subject=[RoleBindingV1Subject(api_group=API_GROUP, kind="User", name=user) for user in users],
        )
